//! Each adapter on small features made for it, and the laws that all keep.

use super::*;
use crate::edtf::Day;
use crate::year::Year;
use geo::{Area, polygon};
use proptest::prelude::*;
use serde_json::json;

/// A square degree with its south-west corner at `x` E, 41 N.
fn at(x: f64, properties: Value) -> Feature {
    let square = polygon![(x: x, y: 41.0), (x: x + 1.0, y: 41.0), (x: x + 1.0, y: 42.0), (x: x, y: 42.0)];
    let Value::Object(properties) = properties else { panic!("an object") };
    Feature { geometry: Some(square.into()), properties }
}

fn feature(properties: Value) -> Feature {
    at(44.0, properties)
}

fn file(stem: &str, features: Vec<Feature>) -> BorderFile {
    BorderFile { label: format!("{stem}.geojson"), stem: stem.into(), features }
}

/// Reads features of one file, which must be recognised as `kind`.
#[track_caller]
fn read(kind: SourceKind, features: Vec<Feature>) -> BorderClaims {
    read_with(kind, features, &ReadOptions::default())
}

#[track_caller]
fn read_with(kind: SourceKind, features: Vec<Feature>, options: &ReadOptions) -> BorderClaims {
    let out = read_border_files(&[file("b", features)], options);
    assert_eq!(out.kinds, [kind]);
    out
}

fn held(out: &BorderClaims) -> Vec<String> {
    out.claims.iter().map(|c| format!("{} {}", c.id, c.span)).collect()
}

fn fates(out: &BorderClaims) -> String {
    out.account.to_string()
}

fn said(out: &BorderClaims) -> Vec<String> {
    out.problems.iter().map(Problem::to_string).collect()
}

fn every_year() -> ReadOptions {
    ReadOptions { every_year: true, ..ReadOptions::default() }
}

fn clio(name: &str, from: i64, to: i64, member_of: &str) -> Value {
    json!({"Name": name, "FromYear": from, "ToYear": to, "Type": "POLITY", "MemberOf": member_of, "Components": ""})
}

#[test]
fn cliopatria_years_are_historians_and_include_the_last() {
    let out =
        read(SourceKind::Cliopatria, vec![feature(clio("Iberia", -300, -1, "")), feature(clio("Iberia", 1, 580, ""))]);
    assert_eq!(held(&out), ["iberia 300–1 BCE", "iberia 1–580 CE"]);
    let out = read(
        SourceKind::Cliopatria,
        vec![
            feature(clio("A", 0, 10, "")),
            feature(clio("B", 20, 10, "")),
            feature(json!({"Name": "C", "FromYear": 1.5, "ToYear": 2, "Type": "POLITY"})),
            feature(json!({"Name": "Tamar", "FromYear": 1184, "ToYear": 1213, "Type": "LEADER"})),
            feature(json!({"Name": " ", "FromYear": 1184, "ToYear": 1213, "Type": "POLITY"})),
            feature(clio("D", 1, 2, "")),
        ],
    );
    assert_eq!(held(&out), ["d 1–2 CE"]);
    for (n, why) in [
        "(A): skipped, its FromYear 0 is no year",
        "(B): skipped, its years run backwards",
        "(C): skipped, its FromYear is no whole",
        "(Tamar): skipped, it is of type LEADER",
        "feature 5: skipped, it has no name",
        "(D): kept",
    ]
    .into_iter()
    .enumerate()
    {
        assert!(fates(&out).lines().nth(n).unwrap().contains(why), "{why}\n{}", fates(&out));
    }
}

#[test]
fn cliopatria_composites_stand_above_their_members_and_are_not_drawn_with_them() {
    let out = read(
        SourceKind::Cliopatria,
        vec![
            feature(
                json!({"Name": "(Mongol Empire)", "FromYear": 1206, "ToYear": 1300, "Components": "Ilkhanate; Golden Horde"}),
            ),
            at(44.0, clio("Ilkhanate", 1256, 1300, "(Mongol Empire)")),
            // Named by the composite only.
            at(45.0, clio("Golden Horde", 1242, 1300, "")),
            // A member of the same name as its composite.
            at(46.0, clio("Mongol Empire", 1206, 1241, "(Mongol Empire)")),
        ],
    );
    let parents: Vec<_> = out.claims.iter().map(|c| (c.kind, c.parent.as_deref())).collect();
    let whole = Some("composite-mongol-empire");
    assert_eq!(
        parents,
        [
            (ClaimKind::Composite, None),
            (ClaimKind::Polity, whole),
            (ClaimKind::Polity, whole),
            (ClaimKind::Polity, whole)
        ]
    );
    for year in ["1210", "1250", "1290"] {
        let s = crate::borders::select(&out.claims, year.parse().unwrap());
        assert!(s.claims.iter().all(|c| c.kind == ClaimKind::Polity) && s.composites.len() == 1, "{year}");
    }
}

#[test]
fn a_member_of_two_composites_leaves_neither_beside_it() {
    let composite = |name: &str| json!({"Name": name, "FromYear": 1100, "ToYear": 1200, "Components": "A"});
    let out = read(
        SourceKind::Cliopatria,
        vec![feature(composite("(X)")), feature(composite("(Y)")), feature(clio("A", 1150, 1160, "(X);(Y)"))],
    );
    let drawn = |year: &str| -> Vec<String> {
        crate::borders::select(&out.claims, year.parse().unwrap()).claims.iter().map(|c| c.id.clone()).collect()
    };
    assert_eq!(drawn("1155"), ["a"]);
    assert_eq!(drawn("1120"), ["composite-x", "composite-y"]);
    assert_eq!(drawn("1161"), ["composite-x", "composite-y"]);
    assert!(
        fates(&out).contains("(Y): kept; a composite, kept only in the years without its members"),
        "{}",
        fates(&out)
    );
}

#[test]
fn rows_of_one_name_and_time_are_one_claim() {
    let out = read(SourceKind::Cliopatria, vec![at(44.0, clio("A", 1, 2, "")), at(45.0, clio("A", 1, 2, ""))]);
    assert_eq!(held(&out), ["a 1–2 CE"]);
    assert!((out.claims[0].area.unsigned_area() - 2.0).abs() < 1e-6);
    assert!(fates(&out).contains("feature 2 (A): joined with feature 1"));
}

#[test]
fn overlapping_years_of_one_polity_lose_no_area() {
    let out =
        read(SourceKind::Cliopatria, vec![at(44.0, clio("A", 1100, 1200, "")), at(46.0, clio("A", 1150, 1180, ""))]);
    assert_eq!(held(&out), ["a 1100–1149 CE", "a 1150–1180 CE", "a 1181–1200 CE"]);
    let areas: Vec<f64> = out.claims.iter().map(|c| c.area.unsigned_area().round()).collect();
    assert_eq!(areas, [1.0, 2.0, 1.0]);
    assert!(said(&out)[0].contains("claims for 1100–1200 CE and for 1150–1180 CE"), "{:?}", said(&out));
}

fn basemap(name: Value, precision: i64) -> Value {
    json!({"NAME": name, "ABBREVN": name, "SUBJECTO": "Empire", "PARTOF": null, "BORDERPRECISION": precision})
}

#[test]
fn basemaps_hold_until_the_next_file() {
    let files: Vec<BorderFile> = ["world_1200", "world_bc100", "world_1279"]
        .map(|stem| file(stem, vec![feature(basemap("X".into(), 1))]))
        .into();
    let out = read_border_files(&files, &ReadOptions::default());
    let mut spans: Vec<Span> = out.claims.iter().map(|c| c.span).collect();
    spans.sort();
    assert_eq!(spans.iter().map(Span::to_string).collect::<Vec<_>>(), ["100 BCE – 1199 CE", "1200–1278 CE", "1279 CE"]);
    assert!(said(&out)[0].contains("nothing says how long 1279 CE holds"), "{:?}", said(&out));
    let out = read_border_files(&[file("borders", files[0].features.clone())], &ReadOptions::default());
    assert!(said(&out)[0].contains("its name gives no year") && fates(&out).contains("skipped, no year is known"));
    let out = read_border_files(&[file("borders", files[0].features.clone())], &every_year());
    assert_eq!(held(&out), ["x all years"]);
}

#[test]
fn basemaps_without_a_name_are_unnamed_areas() {
    let out = read_border_files(
        &[file(
            "world_1200",
            vec![
                at(44.0, basemap(Value::Null, 1)),
                at(45.0, basemap(Value::Null, 2)),
                at(46.0, basemap("X".into(), 3)),
                at(47.0, basemap("Empire".into(), 3)),
            ],
        )],
        &ReadOptions::default(),
    );
    let names: Vec<_> = out.claims.iter().map(|c| (c.id.as_str(), c.name.as_str(), c.certainty)).collect();
    assert_eq!(
        names,
        [
            ("unnamed-world-1200-1", "Unnamed area", Certainty::Conjectural),
            ("unnamed-world-1200-2", "Unnamed area", Certainty::Approximate),
            ("x", "X", Certainty::Treaty),
            ("empire", "Empire", Certainty::Treaty),
        ]
    );
    assert_eq!(out.claims[2].parent.as_deref(), Some("empire"));
    assert_eq!(out.claims[3].parent, None);
    assert_eq!(fates(&out).matches("kept as an unnamed area").count(), 2);
}

fn ohm(start: Value, end: Value) -> Value {
    json!({"name": "საქართველო", "name:en": "Georgia", "admin_level": "2", "start_date": start, "end_date": end})
}

#[test]
fn openhistoricalmap_dates_are_astronomical_and_open() {
    for (start, end, years) in [
        (json!("1184"), json!("1213"), "1184–1213 CE"),
        (json!("1184-05-01"), json!("1213-01-18"), "1184–1212 CE"),
        (json!("-0300"), json!("0000"), "301–1 BCE"),
        (json!("1991-04-09"), Value::Null, "from 1991 CE"),
        (json!("1991"), json!("1000000"), "from 1991 CE"),
        (json!("-1000000"), json!("1000"), "until 1000 CE"),
        (json!(800), json!("79X"), ""),
        (json!("800"), json!(813), "800–813 CE"),
        (json!("1918-05-22"), json!("1918-05-26"), ""),
        (json!("c. 800"), json!("813"), ""),
    ] {
        let out = read(SourceKind::OpenHistoricalMap, vec![feature(ohm(start.clone(), end.clone()))]);
        assert_eq!(
            out.claims.first().map_or(String::new(), |c| c.span.to_string()),
            years,
            "{start} {end} {}",
            fates(&out)
        );
    }
    let out = read(SourceKind::OpenHistoricalMap, vec![feature(ohm("1184".into(), "1213".into()))]);
    let c = &out.claims[0];
    assert_eq!((c.id.as_str(), c.name.as_str(), c.note.as_str()), ("georgia", "Georgia", "local name: საქართველო"));
    assert_eq!(c.doubt, None);
}

#[test]
fn openhistoricalmap_doubt_is_kept() {
    let mut properties = ohm("1350".into(), "1455".into());
    properties["start_date:edtf"] = "13XX".into();
    properties["end_date:edtf"] = "1450/1459~".into();
    let out = read(SourceKind::OpenHistoricalMap, vec![feature(properties)]);
    assert_eq!(out.claims[0].span.to_string(), "1350–1455 CE");
    let doubt = out.claims[0].doubt.unwrap();
    assert_eq!(doubt.to_string(), "begins 1300–1399 CE, ends 1450–1459 CE, dates approximate");
    // EDTF alone: the widest that it allows.
    let only =
        json!({"name": "X", "boundary": "administrative", "start_date:edtf": "13XX", "end_date:edtf": "Y-12000"});
    assert!(fates(&read(SourceKind::OpenHistoricalMap, vec![feature(only)])).contains("run backwards"));
    let only =
        json!({"name": "X", "boundary": "administrative", "start_date:edtf": "Y-12000", "end_date:edtf": "13XX"});
    assert_eq!(
        read(SourceKind::OpenHistoricalMap, vec![feature(only)]).claims[0].span.to_string(),
        "12001 BCE – 1399 CE"
    );
}

fn cshape(first: &str, last: &str) -> Value {
    json!({"gwcode": 372, "cntry_name": "Georgia", "gwsdate": first, "gwedate": last, "gwsyear": 1, "gweyear": 2, "status": "independent"})
}

#[test]
fn cshapes_days_are_included_and_the_last_day_is_open() {
    for (first, last, years) in [
        ("1918-05-26", "1921-03-18", "1918–1920 CE"),
        ("1991/12/21", "2019/12/31", "from 1991 CE"),
        ("1991-12-21", "2016-06-30", "from 1991 CE"),
        ("1886-01-01", "1991-12-31", "1886–1991 CE"),
        ("01.01.1886 00:00:00", "30.12.1991", "1886–1990 CE"),
    ] {
        let out = read(SourceKind::CShapes, vec![feature(cshape(first, last))]);
        assert_eq!(held(&out), [format!("gw-372 {years}")]);
    }
    let by_year =
        json!({"gwcode": 365, "cntry_name": "USSR", "gwsyear": 1922, "gweyear": 1991, "gwemonth": 12, "gweday": 20});
    assert_eq!(held(&read(SourceKind::CShapes, vec![feature(by_year)])), ["gw-365 1922–1990 CE"]);
    let none = json!({"gwcode": -99, "cntry_name": "X", "gwsyear": -1, "gweyear": 1991});
    assert!(fates(&read(SourceKind::CShapes, vec![feature(none)])).contains("no first day"));
}

#[test]
fn natural_earth_needs_to_be_told_that_it_has_no_years() {
    let properties =
        json!({"ADMIN": "Georgia", "NAME_EN": "Georgia", "NAME_RU": "Грузия", "ADM0_A3": "GEO", "ISO_A3": "-99"});
    let out = read(SourceKind::NaturalEarth, vec![feature(properties.clone())]);
    assert!(out.claims.is_empty() && said(&out)[0].contains("--every-year"), "{:?}", said(&out));
    let mut cyprus = properties.clone();
    cyprus["ADM0_A3"] = "-99".into();
    cyprus["NAME_EN"] = "Northern Cyprus".into();
    let out = read_with(SourceKind::NaturalEarth, vec![feature(properties), at(50.0, cyprus)], &every_year());
    assert_eq!(held(&out), ["geo all years", "northern-cyprus all years"]);
    assert_eq!(out.claims[0].name_ru, "Грузия");
}

fn plain(properties: Value) -> BorderClaims {
    read(SourceKind::Plain, vec![feature(properties)])
}

fn mapped(properties: Value, mapping: FieldMapping) -> BorderClaims {
    read_with(SourceKind::Plain, vec![feature(properties)], &ReadOptions { mapping, ..ReadOptions::default() })
}

#[test]
fn the_usual_fields_are_found() {
    for properties in [
        json!({"name": "Kingdom of Georgia", "from_year": 1184, "to_year": 1203}),
        json!({"Name": "Kingdom of Georgia", "FromYear": "1184", "ToYear": 1203.0}),
        json!({"NAME": "Kingdom of Georgia", "START": "AD 1184", "END": "1203 CE"}),
        json!({"name": "Kingdom of Georgia", "start_date": "1184-05-01", "end_date": "1203-12"}),
        json!({"name": "Kingdom of Georgia", "start_date": "1184-05-01", "end_date": "1204-03-01"}),
    ] {
        let out = plain(properties);
        assert_eq!(said(&out), Vec::<String>::new());
        assert_eq!(held(&out), ["kingdom-of-georgia 1184–1203 CE"]);
        assert_eq!(out.claims[0].sources, ["b.geojson"]);
    }
}

#[test]
fn fields_that_are_not_found_are_asked_for_with_those_that_are() {
    let problems = said(&plain(json!({"realm": "X", "since": 1184})));
    assert_eq!(problems.len(), 2);
    assert!(
        problems.iter().all(|p| p.contains("fields found: realm, since") && p.contains("--map-field")),
        "{problems:?}"
    );
    let mapping = FieldMapping { name: Some("relm".into()), ..Default::default() };
    assert!(said(&mapped(json!({"realm": "X", "from": 1, "to": 2}), mapping))[0].contains("did you mean 'realm'?"));
    assert!(said(&plain(json!({"name": "X", "from_year": 1184})))[0].contains("only one field of years"));
}

#[test]
fn ambiguous_fields_are_asked_for() {
    let two = json!({"name": "X", "from": 1, "to": 2, "start": 3, "end": 4});
    let problems = said(&plain(two.clone()));
    assert!(
        problems[0].contains("from and to, or in start and end") && problems[0].contains("fields found"),
        "{problems:?}"
    );
    let mapping = FieldMapping { from_year: Some("start".into()), to_year: Some("end".into()), ..Default::default() };
    assert_eq!(held(&mapped(two, mapping)), ["x 3–4 CE"]);
    let problems = said(&plain(json!({"polity": "X", "title": "Y", "from": 1, "to": 2})));
    assert!(problems[0].contains("polity, title may all hold the name"), "{problems:?}");
}

#[test]
fn without_years_claims_hold_always_only_when_told() {
    let out = plain(json!({"NAME": "X"}));
    assert!(out.claims.is_empty() && said(&out)[0].contains("--every-year"), "{:?}", said(&out));
    let out = read_with(SourceKind::Plain, vec![feature(json!({"NAME": "X"}))], &every_year());
    assert_eq!((held(&out), said(&out)), (vec!["x all years".to_string()], vec![]));
}

#[test]
fn given_fields_come_before_the_usual_ones() {
    let mapping = FieldMapping {
        name: Some("ruler".into()),
        from_year: Some("a".into()),
        to_year: Some("b".into()),
        ..Default::default()
    };
    let out = mapped(json!({"name": "X", "ruler": "Tamar", "from": 1, "to": 2, "a": -3, "b": -2}), mapping);
    assert_eq!(held(&out), ["tamar 3–2 BCE"]);
}

#[test]
fn bad_years_of_plain_files_are_errors_and_missing_names_are_told() {
    let problems = said(&plain(json!({"name": "X", "from": 0, "to": 1.5})));
    assert!(
        problems[0].contains("b.geojson, feature 1 (X), from: '0'") && problems[0].contains("no year 0"),
        "{problems:?}"
    );
    assert!(problems[1].contains("a whole year"), "{problems:?}");
    let problems = said(&plain(json!({"name": "X", "from": 1203, "to": 1184})));
    assert!(problems[0].contains("1203 CE comes after to 1184 CE"), "{problems:?}");
    let out = plain(json!({"name": null, "from": 1, "to": 2}));
    assert!(fates(&out).contains("feature 1: skipped, it has no name"));
    assert!(said(&out)[0].contains("none of its features makes a claim"), "{:?}", said(&out));
}

#[test]
fn a_packs_fields_are_taken_whole() {
    let out = plain(json!({"id": "geo", "name": "Georgia", "from_year": 1, "to_year": 2, "kind": "people",
        "certainty": "treaty", "source": ["a", "b"], "colour": "#010203", "note": "n", "MemberOf": "x"}));
    let c = &out.claims[0];
    assert_eq!(
        (c.id.as_str(), c.kind, c.certainty, c.colour),
        ("geo", ClaimKind::People, Certainty::Treaty, Some([1, 2, 3]))
    );
    assert_eq!((c.sources.join("+"), c.note.as_str()), ("a+b".to_string(), "n"));
}

#[test]
fn repairs_stand_in_the_account() {
    let bow = polygon![(x: 44.0, y: 41.0), (x: 45.0, y: 42.0), (x: 45.0, y: 41.0), (x: 44.0, y: 42.0)];
    let x = json!({"name": "X", "from": 1, "to": 2});
    let f = Feature { geometry: Some(bow.into()), ..feature(x.clone()) };
    let out = read(SourceKind::Plain, vec![f, Feature { geometry: None, ..feature(x) }]);
    assert!((out.claims[0].area.unsigned_area() - 0.5).abs() < 1e-6);
    assert!(
        fates(&out).contains("44.5000 E, 41.5000 N; ")
            && fates(&out).contains("feature 2 (X): skipped, it has no geometry")
    );
    assert!(fates(&out).ends_with("2 features: 1 kept, 0 joined with others, 1 skipped; 1 repaired\n"));
}

#[test]
fn shapefile_keeps_ten_characters_of_a_field() {
    let out = read_border_files(
        &[file("world_1200", vec![feature(json!({"NAME": "X", "BORDERPREC": 3}))])],
        &ReadOptions::default(),
    );
    assert_eq!((out.kinds[0], out.claims[0].certainty), (SourceKind::HistoricalBasemaps, Certainty::Treaty));
}

/// A feature of the schema that holds from the first to the last of whole years, and the file's stem.
fn of_years(kind: SourceKind, first: Year, last: Year) -> Value {
    let iso = |y: Year| if y.0 < 0 { format!("-{:04}", -y.0) } else { format!("{:04}", y.0) };
    let (a, b) = (first.to_historian(), last.to_historian());
    match kind {
        SourceKind::Cliopatria => clio("X", a.into(), b.into(), ""),
        SourceKind::OpenHistoricalMap => ohm(iso(first).into(), iso(last).into()),
        SourceKind::CShapes => cshape(&format!("{:04}-01-01", first.0), &format!("{:04}-12-31", last.0)),
        _ => json!({"name": "X", "from": a, "to": b}),
    }
}

proptest! {
    #[test]
    fn years_round_trip_for_every_source(
        kind in prop::sample::select(vec![SourceKind::Cliopatria, SourceKind::OpenHistoricalMap, SourceKind::CShapes, SourceKind::Plain]),
        first in -3000i32..2010, n in 0i32..400,
    ) {
        let first = Year(if kind == SourceKind::CShapes { 1886 + first.rem_euclid(100) } else { first });
        let last = Year(if kind == SourceKind::CShapes { (first.0 + n).min(2018) } else { first.0 + n });
        let out = read(kind, vec![feature(of_years(kind, first, last))]);
        prop_assert_eq!(out.claims[0].span, Span::inclusive(first, last).unwrap());
    }

    #[test]
    fn adjacent_spans_never_both_hold(
        kind in prop::sample::select(vec![SourceKind::Cliopatria, SourceKind::OpenHistoricalMap, SourceKind::CShapes, SourceKind::Plain]),
        turn in 1890i32..2010, m in 1u8..=12, d in 1u8..=27, bce in any::<bool>(),
    ) {
        let (mut a, mut b);
        if matches!(kind, SourceKind::OpenHistoricalMap | SourceKind::CShapes) {
            let (last, next) = (format!("{turn}-{m:02}-{d:02}"), format!("{turn}-{m:02}-{:02}", d + 1));
            prop_assert!(Day::new(turn, m, d + 1).is_some());
            if kind == SourceKind::CShapes {
                (a, b) = (cshape("1886-01-01", &last), cshape(&next, "2019-12-31"));
            } else {
                (a, b) = (ohm("1886".into(), last.into()), ohm(next.into(), Value::Null));
            }
        } else {
            let turn = Year(if bce { turn - 2000 } else { turn });
            (a, b) = (of_years(kind, Year(turn.0 - 50), turn), of_years(kind, turn.next(), Year(turn.0 + 50)));
        }
        for (properties, name) in [(&mut a, "A"), (&mut b, "B")] {
            for key in ["Name", "name", "name:en", "cntry_name"].iter().filter(|k| properties.get(**k).is_some()).collect::<Vec<_>>() {
                properties[*key] = name.into();
            }
            if kind == SourceKind::CShapes {
                properties["gwcode"] = name.into();
            }
        }
        let out = read(kind, vec![at(44.0, a), at(45.0, b)]);
        prop_assert_eq!(out.claims.len(), 2);
        prop_assert!(!out.claims[0].span.overlaps(&out.claims[1].span));
        prop_assert_eq!(out.claims[0].span.end, out.claims[1].span.start);
    }

    #[test]
    fn snapshots_follow_each_other_without_overlap_or_gap(years in prop::collection::btree_set(-2000i32..2000, 1..8)) {
        let years: Vec<i32> = years.into_iter().filter(|y| *y != 0).collect();
        let stem = |y: &i32| if *y < 0 { format!("world_bc{}", -y) } else { format!("world_{y}") };
        let files: Vec<BorderFile> = years.iter().rev().map(|y| file(&stem(y), vec![feature(basemap("X".into(), 1))])).collect();
        let mut spans: Vec<Span> = read_border_files(&files, &ReadOptions::default()).claims.iter().map(|c| c.span).collect();
        spans.sort();
        prop_assert_eq!(spans.len(), years.len());
        prop_assert!(spans.windows(2).all(|w| w[0].end == w[1].start));
        prop_assert!(spans.iter().zip(&years).all(|(s, y)| s.first().to_historian() == *y));
    }

    #[test]
    fn one_claim_per_polity_and_year(rows in prop::collection::vec((0usize..3, 1000i64..1040, 0i64..20, 0u8..6), 1..12)) {
        let features = rows.iter().map(|&(id, from, n, x)| at(40.0 + f64::from(x) / 2.0, clio(["A", "B", "C"][id], from, from + n, ""))).collect();
        let out = read(SourceKind::Cliopatria, features);
        for year in (995..1065).map(Year) {
            for (k, id) in ["a", "b", "c"].iter().enumerate() {
                let held: Vec<&Claim> = out.claims.iter().filter(|c| c.id == *id && c.span.contains(year)).collect();
                let given: Vec<f64> = rows.iter().filter(|r| r.0 == k && (r.1..=r.1 + r.2).contains(&i64::from(year.0))).map(|r| f64::from(r.3)).collect();
                prop_assert_eq!(held.len(), usize::from(!given.is_empty()));
                if let Some(c) = held.first() {
                    // Half degrees covered by any of the given squares.
                    let covered = (0..8).filter(|h| given.iter().any(|x| f64::from(*h) >= *x && f64::from(*h) < x + 2.0)).count();
                    prop_assert!((c.area.unsigned_area() - covered as f64 / 2.0).abs() < 1e-5);
                }
            }
        }
        prop_assert_eq!(out.account.features.len(), rows.len());
    }
}
