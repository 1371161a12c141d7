//! The atlas of the Caucasus: who held which place when, and that the ground is divided without gap or overlap in every
//! year from 100 BCE to 1991.

use geo::{Area, Contains, Coord, MultiPolygon, Point};
use histmap::borders::topology::Topology;
use histmap::borders::{BorderLine, Certainty, Claim, ClaimKind, covered_spans, political_regions, project_claims};
use histmap::grid::{LonLat, Xy};
use histmap::pack::{PackSource, RegionPack, check_pack, find_pack};
use histmap::year::{Era, Span, Year};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

static PACK: LazyLock<RegionPack> = LazyLock::new(|| find_pack("caucasus", &[]).unwrap());

fn year(historian: i32) -> Year {
    Year::from_historian(historian).unwrap()
}

fn at(historian: i32) -> Era {
    Era::of(year(historian))
}

/// The claims of a year that hold ground: no mere claims, no parts (they lie inside their parents).
fn holders(era: Era) -> Vec<&'static Claim> {
    let holds = |c: &&Claim| !matches!(c.kind, ClaimKind::Claim | ClaimKind::Part);
    PACK.select(era).unwrap().claims.into_iter().filter(holds).collect()
}

/// The first years of all maps that differ.
fn change_years() -> Vec<Year> {
    let starts: BTreeSet<Year> = PACK.claims.iter().map(|c| c.span.start).collect();
    starts.into_iter().collect()
}

const PLACES: [(&str, f64, f64); 34] = [
    ("Tbilisi", 44.80, 41.70),
    ("Mtskheta", 44.72, 41.85),
    ("Dvin", 44.58, 40.00),
    ("Ani", 43.57, 40.51),
    ("Ganja", 46.36, 40.68),
    ("Derbent", 48.28, 42.06),
    ("Shamakhi", 48.64, 40.63),
    ("Trebizond", 39.72, 40.97),
    ("Erzurum", 41.27, 39.91),
    ("Van", 43.40, 38.50),
    ("Tabriz", 46.29, 38.08),
    ("Kutaisi", 42.70, 42.26),
    ("Sukhumi", 41.03, 43.01),
    ("Yerevan", 44.51, 40.18),
    ("Baku", 49.85, 40.39),
    ("Batumi", 41.66, 41.63),
    ("Kars", 43.09, 40.61),
    ("Vladikavkaz", 44.68, 43.03),
    ("Astrakhan", 48.04, 46.35),
    ("Akhaltsikhe", 42.98, 41.64),
    ("Telavi", 45.48, 41.92),
    ("Stepanakert", 46.76, 39.82),
    ("Nakhchivan", 45.41, 39.22),
    ("Ardabil", 48.30, 38.25),
    ("Erzincan", 39.50, 39.75),
    ("Khlat", 42.45, 38.75),
    ("Amid", 40.23, 37.92),
    ("Tskhinvali", 43.97, 42.24),
    ("Ardahan", 42.70, 41.11),
    ("Igdir", 44.04, 39.92),
    ("Khunzakh", 46.70, 42.55),
    ("Ekaterinodar", 38.98, 45.08),
    ("Goris", 46.33, 39.51),
    ("Lankaran", 48.83, 38.75),
];

/// Place, years (first and last), who held it in all of them.
#[rustfmt::skip]
const FACTS: [(&str, i32, i32, &str); 194] = [
    ("Tbilisi", -80, -80, "iberia"), ("Tbilisi", 300, 386, "iberia"), ("Tbilisi", 550, 550, "marz-iberia"),
    ("Tbilisi", 592, 600, "marz-iberia"), ("Tbilisi", 736, 1121, "tbilisi-emirate"), ("Tbilisi", 1122, 1225, "georgia"),
    ("Tbilisi", 1226, 1230, "khwarazm"), ("Tbilisi", 1245, 1245, "georgia"), ("Tbilisi", 1405, 1405, "georgia"),
    ("Tbilisi", 1490, 1722, "kartli"), ("Tbilisi", 1724, 1734, "ottomans"), ("Tbilisi", 1750, 1750, "kartli"),
    ("Tbilisi", 1783, 1800, "kartli-kakheti"), ("Tbilisi", 1801, 1917, "russia"), ("Tbilisi", 1918, 1920, "georgia-dr"),
    ("Tbilisi", 1921, 1991, "georgian-ssr"),
    ("Mtskheta", 1, 386, "iberia"), ("Mtskheta", 591, 600, "iberia"), ("Mtskheta", 1200, 1200, "georgia"),
    ("Dvin", -80, -67, "armenia"), ("Dvin", 1, 113, "armenia"), ("Dvin", 115, 116, "rome"), ("Dvin", 300, 427, "armenia"),
    ("Dvin", 428, 600, "marz-armenia"), ("Dvin", 750, 850, "caliphate"), ("Dvin", 893, 940, "sajids"),
    ("Dvin", 1030, 1060, "shaddadids"), ("Dvin", 1200, 1202, "eldiguzids"), ("Dvin", 1203, 1224, "georgia"),
    ("Dvin", 1300, 1330, "ilkhanate"), ("Dvin", 1555, 1582, "safavids"), ("Dvin", 1639, 1722, "safavids"),
    ("Dvin", 1921, 1991, "armenian-ssr"),
    ("Ani", 387, 427, "armenia"), ("Ani", 591, 606, "byzantium"), ("Ani", 885, 1044, "bagratid-armenia"),
    ("Ani", 1045, 1063, "byzantium"), ("Ani", 1064, 1071, "seljuks"), ("Ani", 1072, 1123, "shaddadids-ani"),
    ("Ani", 1124, 1125, "georgia"), ("Ani", 1130, 1198, "shaddadids-ani"), ("Ani", 1199, 1258, "georgia"),
    ("Ani", 1300, 1300, "ilkhanate"), ("Ani", 1639, 1877, "ottomans"), ("Ani", 1878, 1917, "russia"),
    ("Ani", 1919, 1919, "armenia-dr"), ("Ani", 1921, 1991, "turkey"),
    ("Ganja", -80, 113, "armenia"), ("Ganja", 298, 386, "armenia"), ("Ganja", 388, 509, "albania"), ("Ganja", 550, 600, "marz-albania"),
    ("Ganja", 750, 888, "caliphate"), ("Ganja", 971, 1074, "shaddadids"), ("Ganja", 1075, 1145, "seljuks"),
    ("Ganja", 1146, 1224, "eldiguzids"), ("Ganja", 1235, 1255, "mongols"), ("Ganja", 1588, 1605, "ottomans"),
    ("Ganja", 1639, 1722, "safavids"), ("Ganja", 1747, 1803, "ganja-khanate"), ("Ganja", 1804, 1917, "russia"),
    ("Ganja", 1918, 1919, "azerbaijan-dr"), ("Ganja", 1920, 1991, "azerbaijan-ssr"),
    ("Derbent", 450, 509, "sasanians"), ("Derbent", 550, 600, "marz-albania"), ("Derbent", 714, 868, "caliphate"),
    ("Derbent", 869, 1074, "derbent"), ("Derbent", 1200, 1221, "derbent"), ("Derbent", 1400, 1508, "shirvan"),
    ("Derbent", 1538, 1577, "safavids"), ("Derbent", 1578, 1606, "ottomans"), ("Derbent", 1723, 1734, "russia"),
    ("Derbent", 1747, 1764, "derbent-khanate"), ("Derbent", 1806, 1917, "russia"), ("Derbent", 1921, 1991, "dagestan-assr"),
    ("Shamakhi", -80, 500, "albania"), ("Shamakhi", 750, 860, "caliphate"), ("Shamakhi", 861, 1123, "shirvan"),
    ("Shamakhi", 1125, 1537, "shirvan"), ("Shamakhi", 1538, 1577, "safavids"), ("Shamakhi", 1750, 1819, "shirvan-khanate"),
    ("Shamakhi", 1820, 1917, "russia"),
    ("Trebizond", -80, -67, "pontus"), ("Trebizond", -30, 63, "polemon"), ("Trebizond", 64, 394, "rome"),
    ("Trebizond", 395, 1203, "byzantium"), ("Trebizond", 1204, 1460, "trebizond"), ("Trebizond", 1461, 1914, "ottomans"),
    ("Trebizond", 1916, 1917, "russia"), ("Trebizond", 1923, 1991, "turkey"),
    ("Erzurum", 1, 113, "armenia"), ("Erzurum", 388, 394, "rome"), ("Erzurum", 395, 606, "byzantium"),
    ("Erzurum", 750, 948, "caliphate"), ("Erzurum", 949, 1070, "byzantium"), ("Erzurum", 1072, 1201, "saltukids"),
    ("Erzurum", 1202, 1229, "rum-erzurum"), ("Erzurum", 1230, 1307, "rum"), ("Erzurum", 1502, 1533, "safavids"),
    ("Erzurum", 1534, 1915, "ottomans"), ("Erzurum", 1923, 1991, "turkey"),
    ("Van", -80, 113, "armenia"), ("Van", 550, 600, "marz-armenia"), ("Van", 908, 1020, "vaspurakan"),
    ("Van", 1021, 1070, "byzantium"), ("Van", 1100, 1206, "shah-armens"), ("Van", 1207, 1230, "ayyubids"),
    ("Van", 1407, 1467, "qara-qoyunlu"), ("Van", 1468, 1506, "aq-qoyunlu"), ("Van", 1548, 1914, "ottomans"),
    ("Tabriz", -80, 19, "atropatene"), ("Tabriz", 20, 225, "parthia"), ("Tabriz", 226, 642, "sasanians"),
    ("Tabriz", 643, 888, "caliphate"), ("Tabriz", 981, 1053, "rawwadids"), ("Tabriz", 1054, 1145, "seljuks"),
    ("Tabriz", 1146, 1224, "eldiguzids"), ("Tabriz", 1256, 1335, "ilkhanate"), ("Tabriz", 1405, 1405, "timurids"),
    ("Tabriz", 1408, 1467, "qara-qoyunlu"), ("Tabriz", 1468, 1500, "aq-qoyunlu"), ("Tabriz", 1501, 1584, "safavids"),
    ("Tabriz", 1585, 1602, "ottomans"), ("Tabriz", 1747, 1790, "tabriz-khanate"), ("Tabriz", 1791, 1991, "iran"),
    ("Kutaisi", -80, -67, "pontus"), ("Kutaisi", 131, 785, "lazica"), ("Kutaisi", 786, 1007, "abkhazia"),
    ("Kutaisi", 1008, 1258, "georgia"), ("Kutaisi", 1259, 1328, "imereti"), ("Kutaisi", 1490, 1809, "imereti"),
    ("Kutaisi", 1810, 1917, "russia"), ("Kutaisi", 1921, 1991, "georgian-ssr"),
    ("Sukhumi", 131, 785, "abasgia"), ("Sukhumi", 950, 950, "abkhazia"), ("Sukhumi", 1010, 1250, "georgia"),
    ("Sukhumi", 1490, 1863, "abkhazia-princes"), ("Sukhumi", 1864, 1917, "russia"), ("Sukhumi", 1921, 1991, "abkhaz-assr"),
    ("Yerevan", 591, 606, "byzantium"), ("Yerevan", 1555, 1582, "safavids"), ("Yerevan", 1583, 1603, "ottomans"),
    ("Yerevan", 1747, 1827, "erivan"), ("Yerevan", 1828, 1917, "russia"), ("Yerevan", 1918, 1919, "armenia-dr"),
    ("Yerevan", 1920, 1991, "armenian-ssr"),
    ("Baku", 861, 1537, "shirvan"), ("Baku", 1723, 1734, "russia"), ("Baku", 1747, 1805, "baku"),
    ("Baku", 1806, 1917, "russia"), ("Baku", 1918, 1919, "azerbaijan-dr"), ("Baku", 1920, 1991, "azerbaijan-ssr"),
    ("Batumi", 1010, 1250, "georgia"), ("Batumi", 1463, 1550, "guria"), ("Batumi", 1639, 1877, "ottomans"),
    ("Batumi", 1878, 1917, "russia"), ("Batumi", 1919, 1919, "allied-batum"), ("Batumi", 1921, 1991, "adjar-assr"),
    ("Kars", 963, 1064, "kars-kingdom"), ("Kars", 1065, 1071, "seljuks"), ("Kars", 1206, 1258, "georgia"),
    ("Kars", 1639, 1877, "ottomans"), ("Kars", 1878, 1917, "russia"), ("Kars", 1919, 1919, "armenia-dr"),
    ("Kars", 1920, 1991, "turkey"),
    ("Vladikavkaz", 370, 1238, "alania"), ("Vladikavkaz", 1784, 1917, "russia"), ("Vladikavkaz", 1924, 1991, "north-ossetian"),
    ("Astrakhan", 650, 964, "khazars"), ("Astrakhan", 1120, 1235, "saqsin"), ("Astrakhan", 1245, 1465, "golden-horde"),
    ("Astrakhan", 1466, 1555, "astrakhan-khanate"), ("Astrakhan", 1556, 1917, "russia"), ("Astrakhan", 1918, 1991, "rsfsr"),
    ("Akhaltsikhe", 1490, 1577, "samtskhe"), ("Akhaltsikhe", 1628, 1828, "ottomans"), ("Akhaltsikhe", 1829, 1917, "russia"),
    ("Telavi", 1029, 1103, "kakheti-realm"), ("Telavi", 1490, 1722, "kakheti"),
    ("Stepanakert", 1182, 1211, "khachen"), ("Stepanakert", 1747, 1821, "karabakh"), ("Stepanakert", 1923, 1991, "nkao"),
    ("Nakhchivan", 1747, 1827, "nakhchivan-khanate"), ("Nakhchivan", 1921, 1991, "nakhchivan-assr"),
    ("Ardabil", 1590, 1602, "safavids"), ("Erzincan", 1171, 1227, "mengujekids"), ("Khlat", 1100, 1206, "shah-armens"),
    ("Amid", 298, 394, "rome"), ("Tskhinvali", 1922, 1991, "south-ossetian-ao"), ("Ardahan", 1878, 1917, "russia"),
    ("Igdir", 1828, 1917, "russia"), ("Khunzakh", 1843, 1858, "imamate"), ("Ekaterinodar", 1783, 1917, "russia"),
    ("Goris", 1172, 1210, "eldiguzids"), ("Lankaran", 1747, 1825, "talysh"),
];

/// The years of `first..=last` (historian's) on which the map could change, and the two ends.
fn sample(first: i32, last: i32) -> Vec<Year> {
    let (first, last) = (year(first), year(last));
    let mut years = vec![first, last];
    years.extend(change_years().into_iter().filter(|y| *y > first && *y < last));
    years
}

#[test]
fn places_were_held_by_whom_history_says() {
    let mut wrong = Vec::new();
    for (place, first, last, expected) in FACTS {
        let (_, lon, lat) = PLACES.into_iter().find(|p| p.0 == place).unwrap();
        for y in sample(first, last) {
            let selection = PACK.select(Era::of(y)).unwrap();
            let here: Vec<&Claim> =
                selection.claims.into_iter().filter(|c| c.area.contains(&Point::new(lon, lat))).collect();
            let held = here.iter().any(|c| c.id == expected && c.kind != ClaimKind::Claim);
            let whole = here.iter().filter(|c| !matches!(c.kind, ClaimKind::Claim | ClaimKind::Part)).count();
            if !held || whole != 1 {
                let ids: Vec<&str> = here.iter().map(|c| c.id.as_str()).collect();
                wrong.push(format!("{place} in {y}: {ids:?}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_year_has_a_map_and_the_pack_no_problem() {
    let source = PackSource::shipped().into_iter().find(|s| s.name() == "caucasus").unwrap();
    assert_eq!(check_pack(&source), vec![]);
    let whole = Span::inclusive(year(-100), year(1991)).unwrap();
    assert_eq!(covered_spans(&PACK.claims), [whole]);
    for y in whole.start.0..whole.end.0 {
        let selection = PACK.select(Era::of(Year(y))).unwrap();
        assert!(selection.claims.len() >= 3 && selection.later.is_empty(), "{}", Year(y));
    }
}

/// Square degrees: below it is rounding.
const NOTHING: f64 = 1e-9;

#[test]
fn the_ground_is_divided_without_gap_or_overlap_on_every_map() {
    let ground = |era: Era| -> f64 { holders(era).iter().map(|c| c.area.unsigned_area()).sum() };
    let whole = ground(at(1200));
    let outer = |era: Era| {
        let claims = holders(era);
        let areas: Vec<MultiPolygon<f64>> = claims.iter().map(|c| c.area.clone()).collect();
        let topology = Topology::build(&areas, 0.0);
        let mut edge = 0.0;
        for arc in &topology.arcs {
            for side in [true, false] {
                let on_side: Vec<&str> =
                    arc.users.iter().filter(|u| u.is_left == side).map(|u| claims[u.area].id.as_str()).collect();
                assert!(on_side.len() <= 1, "{era}: {on_side:?} lie on one side of a border");
            }
            if arc.users.len() == 1 {
                edge += length(&arc.points);
            }
        }
        edge
    };
    let rim = outer(at(1200));
    change_years().par_iter().for_each(|&y| {
        let era = Era::of(y);
        // Lands that overlap would add up to more than the whole, a gap to less; a hole inside would lengthen the rim.
        assert!((ground(era) - whole).abs() < NOTHING, "{era}: {} instead of {whole}", ground(era));
        assert!((outer(era) - rim).abs() < NOTHING, "{era}: a rim of {} instead of {rim}", outer(era));
    });
}

fn length(line: &[Coord<f64>]) -> f64 {
    line.windows(2).map(|w| (w[1].x - w[0].x).hypot(w[1].y - w[0].y)).sum()
}

#[test]
fn what_is_contested_is_declared() {
    let mut disputed: BTreeMap<&str, Span> = BTreeMap::new();
    for c in PACK.claims.iter().filter(|c| c.kind == ClaimKind::Claim) {
        disputed.insert(&c.id, c.span);
        assert!(c.parent.is_some(), "{}", c.id);
    }
    assert_eq!(disputed["georgia-kars"], "1199/1205".parse().unwrap());
    assert_eq!(disputed["armenia-karabakh"], "1918/1920".parse().unwrap());
    assert!(disputed.len() >= 15);
}

#[test]
fn parts_lie_inside_their_parents() {
    for y in [1923, 1936, 1950, 1991] {
        let selection = PACK.select(at(y)).unwrap();
        for part in selection.claims.iter().filter(|c| c.kind == ClaimKind::Part) {
            let parent = selection.claims.iter().find(|c| Some(&c.id) == part.parent.as_ref());
            let parent = parent.unwrap_or_else(|| panic!("{} has no parent in {y}", part.id));
            let corner = |p: &geo::Polygon<f64>| geo::InteriorPoint::interior_point(p).unwrap();
            assert!(part.area.iter().all(|p| parent.area.contains(&corner(p))), "{} in {y}", part.id);
        }
        let composites: Vec<&str> = selection.composites.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(composites, if y < 1936 { vec!["ussr", "zsfsr"] } else { vec!["ussr"] }, "{y}");
    }
}

/// The outlines of 1200, by number of corners (exterior, then holes): lands and ledger put them together as they were drawn.
#[test]
fn the_outlines_of_1200_are_those_that_were_drawn() {
    let expected: [(&str, &[usize]); 31] = [
        ("ahmadilis", &[11]),
        ("alania", &[60]),
        ("artuqids-kayfa", &[32]),
        ("artuqids-kharpert", &[35]),
        ("artuqids-mardin", &[17]),
        ("ayyubids", &[29]),
        ("ayyubids-mayyafariqin", &[15]),
        ("byzantium", &[50]),
        ("cumans", &[137, 22]),
        ("derbent", &[20]),
        ("didoi", &[13]),
        ("durdzuks", &[21]),
        ("eldiguzids", &[98, 16, 11]),
        ("georgia", &[120]),
        ("georgia-kars", &[16]),
        ("georgia-shaki", &[14]),
        ("georgia-shamkor", &[10]),
        ("ghumik", &[17]),
        ("gilan", &[42]),
        ("hakkari", &[34]),
        ("kaytak", &[25]),
        ("khachen", &[16]),
        ("khwarazm", &[46]),
        ("lakz", &[24]),
        ("mengujekids", &[37]),
        ("rum", &[54]),
        ("saltukids", &[38]),
        ("saqsin", &[22]),
        ("sarir", &[28]),
        ("shah-armens", &[56]),
        ("zichia", &[75]),
    ];
    let claims = PACK.select(at(1200)).unwrap().claims;
    for (id, corners) in expected {
        let claim = claims.iter().find(|c| c.id == id).unwrap_or_else(|| panic!("{id}"));
        let rings = claim.area.iter().flat_map(|p| std::iter::once(p.exterior()).chain(p.interiors()));
        let mut found: Vec<usize> = rings.map(|r| r.0.len()).collect();
        found[1..].sort_by(|a, b| b.cmp(a));
        assert_eq!(found, corners, "{id}");
    }
}

#[test]
fn a_polity_keeps_its_colour_and_every_one_has_its_names() {
    let mut colours: BTreeMap<&str, [u8; 3]> = BTreeMap::new();
    for c in &PACK.claims {
        let colour = c.colour.unwrap_or_else(|| panic!("{} has no colour", c.id));
        assert_eq!(*colours.entry(&c.id).or_insert(colour), colour, "{}", c.id);
        assert!(!c.name.is_empty() && !c.name_ru.is_empty() && !c.sources.is_empty(), "{}", c.id);
    }
}

#[test]
fn every_map_is_drawn_and_treaty_lines_are_marked() {
    let plane = |p: LonLat| Some(Xy { x: (p.lon - 45.0) * 84_000.0, y: (p.lat - 42.0) * 111_000.0 });
    let drawn = |era: Era| {
        let claims = PACK.select(era).unwrap().claims;
        political_regions(&project_claims(&claims, &plane).unwrap(), &Default::default()).unwrap()
    };
    let years: Vec<Year> =
        [-80, 1, 300, 550, 750, 950, 1080, 1124, 1204, 1300, 1490, 1600, 1750, 1919, 1936].map(year).into();
    years.par_iter().for_each(|&y| {
        let regions = drawn(Era::of(y));
        assert!(regions.polities.iter().all(|p| p.outline.unsigned_area() > 0.0), "{y}");
    });
    let between = |y: i32, a: &str, b: &str| -> BTreeMap<Certainty, Vec<Coord<f64>>> {
        let regions = drawn(at(y));
        let code = |id: &str| regions.polities.iter().find(|p| p.claim.id == id).unwrap().code;
        let (a, b) = (code(a).min(code(b)), code(a).max(code(b)));
        // Lines over the sea mean nothing: there is land between 41.5 and 48.7 E alone.
        let is_on_land = |l: &&BorderLine| l.line.0.iter().any(|c| c.x > -290_000.0 && c.x < 310_000.0);
        let lines = regions.borders.iter().filter(|l| (l.left, l.right) == (a, b)).filter(is_on_land);
        lines.map(|l| (l.certainty, vec![l.line.0[0], l.line.0[l.line.0.len() - 1]])).collect()
    };
    let only = |y: i32, a: &str, b: &str, expected: Certainty| {
        let found = between(y, a, b);
        assert!(found.keys().eq([&expected]), "{a} and {b} in {y}: {found:?}");
    };
    only(1914, "russia", "ottomans", Certainty::Surveyed);
    only(1900, "russia", "iran", Certainty::Treaty);
    only(1936, "turkey", "armenian-ssr", Certainty::Surveyed);
    only(1700, "kartli", "imereti", Certainty::Treaty);
    only(1600, "safavids", "ottomans", Certainty::Approximate);
}
