//! Coordinate reference systems by name, and transforming between them; always x, y or lon, lat.

use super::log;
use crate::error::{Error, Result};
use crate::grid::{Crs, Xy};
use gdal::spatial_ref::{AxisMappingStrategy, CoordTransform, SpatialRef};
use geo::{CoordsIter, Geometry, MapCoords};
use std::path::Path;

/// Longitude and latitude on WGS 84: what region packs and GeoJSON are in.
pub const WGS84: &str = "EPSG:4326";

/// The CRS that `definition` names: `EPSG:n` (or another authority that PROJ knows), WKT, a PROJ string, or a file that
/// holds one of these (a `.prj`). `flag` is the option it came from, for the message.
///
/// # Errors
/// [`Error::Argument`] when it is unknown, or neither geographic nor projected (vertical, geocentric).
///
/// ```
/// let utm = histmap::gdal_io::crs("EPSG:32638", "--crs")?;
/// assert!(!utm.is_geographic);
/// # Ok::<(), histmap::Error>(())
/// ```
pub fn crs(definition: &str, flag: &str) -> Result<Crs> {
    log::start();
    let given = definition.trim();
    let fail = |found: String| {
        Error::argument(flag, found, "give EPSG:n (for example EPSG:32638), WKT, a PROJ string or a .prj file")
    };
    let web = given.starts_with("http://") || given.starts_with("https://");
    if given.is_empty() || (web && !given.contains("opengis.net/def/crs")) {
        return Err(fail(format!("'{given}' names no coordinate reference system")));
    }
    if given.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::argument(
            flag,
            format!("'{given}' is a bare number"),
            format!("did you mean EPSG:{given}?"),
        ));
    }
    let path = Path::new(given);
    let from_file = path.is_file();
    let text = match from_file {
        true => std::fs::read_to_string(path).map_err(|e| Error::read(path, e))?,
        false => given.to_string(),
    };
    let srs = SpatialRef::from_definition(text.trim())
        .or_else(|e| if from_file { SpatialRef::from_esri(text.trim()) } else { Err(e) })
        .map_err(|_| {
            let said = log::failure().map_or(String::new(), |m| format!(" ({m})"));
            fail(format!("'{}' is no known coordinate reference system{said}", shorten(given)))
        })?;
    if !(srs.is_geographic() || srs.is_projected() || srs.is_local()) {
        return Err(fail(format!("'{}' has no horizontal axes", shorten(given))));
    }
    // A file or a whole definition makes a poor name.
    let plain = !from_file && given.len() <= 40 && !given.contains(['[', '+', '{']);
    from_srs(&srs, plain.then_some(given)).map_err(fail)
}

/// Metres in one unit of the axes of `crs`; `None` where its axes are degrees. 1 for UTM, 0.3048 for feet: slopes and
/// areas on a grid need 1.
///
/// # Errors
/// [`Error::Argument`] when the definition is unusable.
pub fn metres_per_unit(crs: &Crs) -> Result<Option<f64>> {
    let srs = to_srs(crs)?;
    Ok((!crs.is_geographic).then(|| srs.linear_units()))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

/// Ours from GDAL's; named by its authority, else by its own name, unless `name` is given.
pub(super) fn from_srs(srs: &SpatialRef, name: Option<&str>) -> std::result::Result<Crs, String> {
    let name = match name {
        Some(name) => name.to_string(),
        None => srs.authority().ok().or_else(|| srs.name()).unwrap_or_else(|| "unnamed CRS".to_string()),
    };
    Ok(Crs { name, wkt: wkt2(srs)?, is_geographic: srs.is_geographic() || srs.is_derived_geographic() })
}

/// GDAL's from ours, with x before y.
pub(super) fn to_srs(crs: &Crs) -> Result<SpatialRef> {
    log::start();
    let definition = if crs.wkt.is_empty() { &crs.name } else { &crs.wkt };
    let mut srs = SpatialRef::from_definition(definition)
        .map_err(|e| Error::argument("coordinate reference system", &crs.name, log::cause(&e)))?;
    srs.set_axis_mapping_strategy(AxisMappingStrategy::TraditionalGisOrder);
    Ok(srs)
}

/// WKT 2:2019, which the crate does not wrap (its `to_wkt` gives WKT 1).
fn wkt2(srs: &SpatialRef) -> std::result::Result<String, String> {
    let options = [c"FORMAT=WKT2_2019".as_ptr(), c"MULTILINE=NO".as_ptr(), std::ptr::null()];
    let mut text = std::ptr::null_mut();
    // SAFETY: the handle lives as long as `srs`; `options` is a NULL-ended list of NUL-ended strings; GDAL stores into
    // `text` a string that it allocated, or leaves it null.
    let status = unsafe { gdal_sys::OSRExportToWktEx(srs.to_c_hsrs(), &mut text, options.as_ptr()) };
    if text.is_null() {
        return Err("it has no definition as text".into());
    }
    // SAFETY: not null, so a NUL-ended string of GDAL's; it is copied, then freed once by the matching function.
    let wkt = unsafe {
        let wkt = std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned();
        gdal_sys::VSIFree(text.cast());
        wkt
    };
    if status != gdal_sys::OGRErr::OGRERR_NONE || wkt.is_empty() {
        return Err("it has no definition as text".into());
    }
    Ok(wkt)
}

/// A transformation from one CRS to another, x or lon first on both sides.
///
/// It belongs to the thread that made it (PROJ contexts are not shared): make one per thread; that costs about a
/// millisecond. Between CRS of one datum (WGS 84 and its UTM zones) a point's image depends on the point alone. Between
/// datums PROJ may choose among several operations by the mean of the points of one call, to within their accuracy.
pub struct Transformer {
    transform: CoordTransform,
}

impl Transformer {
    /// The transformation from `from` to `to`.
    ///
    /// # Errors
    /// [`Error::Argument`] when PROJ knows no way from one to the other.
    pub fn new(from: &Crs, to: &Crs) -> Result<Transformer> {
        let (source, target) = (to_srs(from)?, to_srs(to)?);
        let transform = CoordTransform::new(&source, &target).map_err(|e| {
            Error::argument(
                "coordinate reference systems",
                format!("{} to {}: {}", from.name, to.name, log::cause(&e)),
                "choose two between which PROJ can transform",
            )
        })?;
        Ok(Transformer { transform })
    }

    /// Replaces each point (`xs[k]`, `ys[k]`) by its image; both coordinates become NaN where it has none.
    ///
    /// # Panics
    /// When the slices differ in length: a programming error.
    pub fn forward(&self, xs: &mut [f64], ys: &mut [f64]) {
        assert_eq!(xs.len(), ys.len(), "one y for each x");
        log::start();
        let mut succeeded = vec![0; xs.len().min(CHUNK)];
        for (xs, ys) in xs.chunks_mut(CHUNK).zip(ys.chunks_mut(CHUNK)) {
            succeeded.fill(0);
            // SAFETY: the handle lives as long as `self`; the three arrays hold at least `xs.len()` values, which fits
            // an int as CHUNK does; a null z means 0.
            unsafe {
                gdal_sys::OCTTransformEx(
                    self.transform.to_c_hct(),
                    xs.len() as std::ffi::c_int,
                    xs.as_mut_ptr(),
                    ys.as_mut_ptr(),
                    std::ptr::null_mut(),
                    succeeded.as_mut_ptr(),
                );
            }
            for ((x, y), ok) in xs.iter_mut().zip(ys).zip(&succeeded) {
                if *ok == 0 || !x.is_finite() || !y.is_finite() {
                    (*x, *y) = (f64::NAN, f64::NAN);
                }
            }
        }
    }

    /// The image of one point; `None` where it has none.
    pub fn point(&self, point: Xy) -> Option<Xy> {
        let (mut x, mut y) = ([point.x], [point.y]);
        self.forward(&mut x, &mut y);
        x[0].is_finite().then_some(Xy { x: x[0], y: y[0] })
    }

    /// The image of `geometry`, vertex by vertex (edges are not densified); `None` where a vertex has none.
    pub fn geometry(&self, geometry: &Geometry<f64>) -> Option<Geometry<f64>> {
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = geometry.coords_iter().map(|c| (c.x, c.y)).unzip();
        self.forward(&mut xs, &mut ys);
        if xs.iter().any(|x| x.is_nan()) {
            return None;
        }
        // Both walk the vertices in the same order.
        let images = std::cell::RefCell::new(xs.into_iter().zip(ys));
        Some(geometry.map_coords(|c| match images.borrow_mut().next() {
            Some((x, y)) => geo::Coord { x, y },
            None => c,
        }))
    }
}

/// Points per call into PROJ.
const CHUNK: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use geo::polygon;

    #[test]
    fn epsg_wkt_proj_and_file_name_the_same_crs() {
        let utm = crs("EPSG:32638", "--crs").unwrap();
        assert_eq!((utm.name.as_str(), utm.is_geographic), ("EPSG:32638", false));
        assert!(utm.wkt.starts_with("PROJCRS["), "{}", utm.wkt);
        assert_eq!(crs(&utm.wkt, "--crs").unwrap(), utm);
        let proj = crs("+proj=utm +zone=38 +datum=WGS84 +units=m", "--crs").unwrap();
        assert!(!proj.is_geographic && proj.name != "EPSG:32638");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.prj");
        std::fs::write(&file, &utm.wkt).unwrap();
        assert_eq!(crs(file.to_str().unwrap(), "--crs").unwrap(), utm);
        assert!(crs(WGS84, "--crs").unwrap().is_geographic);
    }

    #[test]
    fn an_unknown_crs_is_refused_in_a_sentence() {
        assert!(crs("32638", "--crs").unwrap_err().to_string().contains("did you mean EPSG:32638?"));
        for bad in ["EPSG:999999", "EPSG:", "utm", "", "+proj=nonsense", "https://example.com/crs"] {
            let e = crs(bad, "--crs").unwrap_err().to_string();
            assert!(e.starts_with("--crs: ") && e.contains("EPSG:32638"), "{bad}: {e}");
        }
        // EPSG:5773 is the EGM96 height: vertical only. EPSG:4978 is geocentric.
        for bad in ["EPSG:5773", "EPSG:4978"] {
            assert!(crs(bad, "--crs").unwrap_err().to_string().contains("no horizontal axes"));
        }
    }

    #[test]
    fn feet_are_told_from_metres() {
        assert_eq!(metres_per_unit(&crs("EPSG:32638", "").unwrap()).unwrap(), Some(1.0));
        assert_eq!(metres_per_unit(&crs(WGS84, "").unwrap()).unwrap(), None);
        // EPSG:2225 is California zone 1 in US survey feet.
        let foot = metres_per_unit(&crs("EPSG:2225", "").unwrap()).unwrap().unwrap();
        assert!((foot - 1200.0 / 3937.0).abs() < 1e-12);
    }

    #[test]
    fn elbrus_goes_where_proj_puts_it() {
        // echo 42.4375 43.3528 | gdaltransform -s_srs EPSG:4326 -t_srs EPSG:32638 -output_xy
        const ELBRUS: (f64, f64) = (292329.728, 4803182.954);
        let (wgs84, utm) = (crs(WGS84, "").unwrap(), crs("EPSG:32638", "").unwrap());
        let there = Transformer::new(&wgs84, &utm).unwrap();
        let at = there.point(Xy { x: 42.4375, y: 43.3528 }).unwrap();
        assert!((at.x - ELBRUS.0).abs() < 0.01 && (at.y - ELBRUS.1).abs() < 0.01, "{at:?}");
        let back = Transformer::new(&utm, &wgs84).unwrap().point(at).unwrap();
        assert!((back.x - 42.4375).abs() < 1e-9 && (back.y - 43.3528).abs() < 1e-9);
    }

    #[test]
    fn points_without_image_become_nan_and_leave_the_others() {
        let there = Transformer::new(&crs(WGS84, "").unwrap(), &crs("EPSG:3857", "").unwrap()).unwrap();
        let (mut xs, mut ys) = ([45.0, f64::NAN, 10.0], [42.0, 1.0, 1e9]);
        there.forward(&mut xs, &mut ys);
        assert!(xs[0].is_finite() && xs[1].is_nan() && ys[1].is_nan() && xs[2].is_nan());
    }

    #[test]
    fn geometries_keep_their_shape() {
        let there = Transformer::new(&crs(WGS84, "").unwrap(), &crs("EPSG:3857", "").unwrap()).unwrap();
        let square = polygon![(x: 1.0, y: 1.0), (x: 2.0, y: 1.0), (x: 2.0, y: 2.0), (x: 1.0, y: 2.0)];
        let Some(Geometry::Polygon(image)) = there.geometry(&square.clone().into()) else { panic!() };
        assert_eq!(image.exterior().0.len(), 5);
        let x = image.exterior().0[1].x;
        assert!((x - 222638.98).abs() < 0.01, "{x}"); // 2 degrees of longitude on the web Mercator sphere
    }
}
