//! The legend: which colours of a map mean what, as a small TOML file.

use super::colour::{Lab, Rgb, from_hex, to_hex};
use crate::borders::problem::{Problem, shown, suggestion};
use crate::error::{Error, Result};
use crate::pack::table::{Table, described, line_at, number};
use toml::de::{DeTable, DeValue};

/// The most classes that a legend may have: cells hold them in 8 bits.
pub const MOST_CLASSES: usize = 200;
/// Tolerance of a class that states none, hundredths of OKLab.
pub const DEFAULT_TOLERANCE: f64 = 6.0;

const ROOT_KEYS: [&str; 4] = ["class", "leave_out", "coordinates", "lightness"];
const CLASS_KEYS: [&str; 12] =
    ["name", "id", "kind", "colour", "tolerance", "points", "low_m", "high_m", "height_m", "part_of", "within", "note"];
const LEAVE_OUT_KEYS: [&str; 2] = ["box", "polygon"];

/// What an area of a colour is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClassKind {
    /// A political body.
    Polity,
    /// Sea, lakes, wide rivers.
    Water,
    /// Land that belongs to none of the polities.
    Land,
    /// Printed lines and lettering: removed, the gap goes to the regions beside it.
    Line,
    /// A tint of heights.
    Elevation,
    /// What is no part of the map: kept apart and not written.
    Ignore,
}

impl ClassKind {
    /// All kinds.
    pub const ALL: [ClassKind; 6] = [
        ClassKind::Polity,
        ClassKind::Water,
        ClassKind::Land,
        ClassKind::Line,
        ClassKind::Elevation,
        ClassKind::Ignore,
    ];

    /// The word for it in legends and attributes.
    pub fn as_str(self) -> &'static str {
        match self {
            ClassKind::Polity => "polity",
            ClassKind::Water => "water",
            ClassKind::Land => "land",
            ClassKind::Line => "line",
            ClassKind::Elevation => "elevation",
            ClassKind::Ignore => "ignore",
        }
    }
}

/// One entry of a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name, unique in the legend.
    pub name: String,
    /// Key of the polity in claims; made from the name where the legend has none.
    pub id: String,
    /// What it is.
    pub kind: ClassKind,
    /// Its colours, any of them.
    pub colours: Vec<Rgb>,
    /// Places of the scan where its colour is to be taken from.
    pub points: Vec<[f64; 2]>,
    /// The farthest that a pixel's colour may be, hundredths of OKLab.
    pub tolerance: f32,
    /// The lowest height of an elevation class, metres.
    pub low_m: Option<f64>,
    /// The highest.
    pub high_m: Option<f64>,
    /// The height of a class of contour lines, metres.
    pub height_m: Option<f64>,
    /// The class that it is the part of which lies inside `within`.
    pub part_of: Option<usize>,
    /// Rings that it lies in, for a part.
    pub within: Vec<Vec<[f64; 2]>>,
    /// Anything; written into the attributes.
    pub note: String,
}

/// What coordinates in a legend are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coordinates {
    /// Column and line from the upper left corner of the scan.
    #[default]
    Pixel,
    /// x and y in the scan's own CRS.
    Map,
}

/// A legend, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Legend {
    /// Its entries, in order.
    pub classes: Vec<Class>,
    /// Rings whose inside is no part of the map.
    pub leave_out: Vec<Vec<[f64; 2]>>,
    /// What its coordinates are.
    pub coordinates: Coordinates,
    /// Weight of lightness in distances between colours, 0 to 1: less where a wash is shaded or unevenly inked.
    pub lightness: f32,
}

impl Legend {
    /// Reads the legend `text`; `file` is what messages call it.
    ///
    /// # Errors
    /// [`Error::Pack`] with every problem at its line: TOML slips, unknown keys with the near one, bad colours, missing heights.
    ///
    /// ```
    /// use histmap::trace::{ClassKind, Legend};
    /// let text = "[[class]]\nname = \"Sea\"\nkind = \"water\"\ncolour = \"#b6dcf4\"";
    /// let legend = Legend::parse(text, "legend.toml")?;
    /// assert_eq!(legend.classes[0].kind, ClassKind::Water);
    /// assert!(Legend::parse(&text.replace("colour", "color"), "l.toml").unwrap_err().to_string().contains("did you mean 'colour'"));
    /// # Ok::<(), histmap::Error>(())
    /// ```
    pub fn parse(text: &str, file: &str) -> Result<Legend> {
        let mut problems = Vec::new();
        let legend = read(text, file, &mut problems);
        if problems.is_empty() {
            return Ok(legend);
        }
        let list: Vec<String> = problems.iter().map(Problem::to_string).collect();
        Err(Error::Pack { pack: file.to_string(), count: list.len(), list: list.join("\n") })
    }
}

fn read(text: &str, file: &str, problems: &mut Vec<Problem>) -> Legend {
    let mut legend =
        Legend { classes: Vec::new(), leave_out: Vec::new(), coordinates: Coordinates::Pixel, lightness: 1.0 };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let line = error.span().map(|s| line_at(text, s.start));
        let message = error.message().lines().next().unwrap_or("it cannot be read").to_string();
        problems.push(Problem::error(file, message, "TOML: key = value, texts in double quotes").at_line(line));
    }
    if !errors.is_empty() {
        return legend;
    }
    let mut root = Table { file, text, path: "", table: root.get_ref(), line: None, problems };
    root.only(&ROOT_KEYS);
    if root.word_at("coordinates", &["pixel", "map"]).as_deref() == Some("map") {
        legend.coordinates = Coordinates::Map;
    }
    if let Some(weight) = root.optional_number("lightness") {
        legend.lightness = weight as f32;
        if !(0.0..=1.0).contains(&weight) {
            root.say("lightness", weight, "the weight of lightness in distances, 0 to 1");
        }
    }
    if !root.has("class") {
        root.missing("class", "one [[class]] at least, with name, kind and colour");
    }
    let mut parts: Vec<(usize, String, Option<usize>)> = Vec::new();
    root.each_table("class", |one| {
        let (class, parent) = read_class(one);
        if let Some(parent) = parent {
            parts.push((legend.classes.len(), parent, one.line));
        }
        if !class.name.is_empty() && legend.classes.iter().any(|c| c.name == class.name) {
            one.say(
                "name",
                format!("{} stands twice", shown(&class.name)),
                "each class once; it may have several colours",
            );
        }
        legend.classes.push(class);
    });
    root.each_table("leave_out", |one| {
        one.only(&LEAVE_OUT_KEYS);
        let rings = one.rings_at("polygon");
        legend.leave_out.extend(rings);
        match one.numbers_at("box").as_deref() {
            Some([x0, y0, x1, y1]) => {
                legend.leave_out.push(vec![[*x0, *y0], [*x1, *y0], [*x1, *y1], [*x0, *y1]]);
            }
            Some(other) => one.say("box", format!("{} numbers", other.len()), "four: two opposite corners"),
            None if !one.has("polygon") && !one.has("box") => one.missing("box", "a box, or a polygon"),
            None => {}
        }
    });
    if legend.classes.len() > MOST_CLASSES {
        root.say("class", format!("{} classes", legend.classes.len()), "200 at the most");
    }
    for (index, parent, line) in parts {
        let names = legend.classes.iter().map(|c| c.name.as_str());
        let found = legend.classes.iter().position(|c| c.name == parent);
        let is_plain = found.is_some_and(|p| legend.classes[p].part_of.is_none() && p != index);
        if is_plain && let Some(p) = found {
            if legend.classes[p].kind == ClassKind::Line {
                let problem = Problem::error(file, "it is part of a class of lines", "part of an area");
                root.problems.push(problem.at_line(line).about("class.part_of"));
            }
            legend.classes[index].part_of = found;
        } else {
            let near = suggestion(&parent, names);
            let what = if found.is_some() { "is itself a part" } else { "is no class of this legend" };
            let expected = if near.is_empty() || found.is_some() {
                "the name of another class with a colour".into()
            } else {
                near
            };
            root.problems.push(
                Problem::error(file, format!("{} {what}", shown(&parent)), expected)
                    .at_line(line)
                    .about("class.part_of"),
            );
        }
    }
    legend
}

/// One `[[class]]`, and the name of the class that it is a part of.
fn read_class(one: &mut Table) -> (Class, Option<String>) {
    one.only(&CLASS_KEYS);
    let name = one.text_at("name", true);
    let kind = match one.has("kind") {
        true => one.word_at("kind", &ClassKind::ALL.map(ClassKind::as_str)),
        false => {
            one.missing("kind", "polity, water, land, line, elevation or ignore");
            None
        }
    };
    let kind = ClassKind::ALL.into_iter().find(|k| Some(k.as_str()) == kind.as_deref()).unwrap_or(ClassKind::Polity);
    let parent = Some(one.text_at("part_of", false)).filter(|p| !p.is_empty());
    let colours = one.colours_at("colour");
    let points: Vec<[f64; 2]> = one.pairs_at("points");
    let within = one.rings_at("within");
    if parent.is_some() {
        if one.has("colour") || one.has("points") {
            one.say("colour", "a part has a colour of its own", "the colour in the class that it is part of");
        }
        if !one.has("within") {
            one.missing("within", "the polygon that the part lies in, for example [[10, 10], [90, 10], [90, 60]]");
        }
    } else {
        if !one.has("colour") && !one.has("points") {
            one.missing("colour", "a colour such as \"#b6dcf4\" or several in an array; or points to take it from");
        }
        if one.has("within") {
            one.say("within", "it stands without part_of", "part_of, the class whose colour the part has");
        }
    }
    let tolerance = one.optional_number("tolerance").unwrap_or(DEFAULT_TOLERANCE);
    if !(0.0..=100.0).contains(&tolerance) {
        one.say("tolerance", tolerance, "a distance of colours, 0 to 100; 2 is just visible, 6 is usual");
    }
    let [low_m, high_m, height_m] = ["low_m", "high_m", "height_m"].map(|k| one.optional_number(k));
    match (kind, low_m, high_m) {
        (ClassKind::Elevation, Some(low), Some(high)) if low >= high => {
            one.say("low_m", format!("{low} is not below high_m, {high}"), "the lower height first");
        }
        (ClassKind::Elevation, Some(_), Some(_)) => {}
        (ClassKind::Elevation, low, _) => {
            one.missing(
                if low.is_some() { "high_m" } else { "low_m" },
                "the heights between which the tint lies, metres",
            );
        }
        (_, None, None) => {}
        (_, low, _) => {
            let key = if low.is_some() { "low_m" } else { "high_m" };
            one.say(key, format!("it stands in a class of kind {}", kind.as_str()), "kind = \"elevation\"");
        }
    }
    if height_m.is_some() && kind != ClassKind::Line {
        one.say("height_m", format!("it stands in a class of kind {}", kind.as_str()), "kind = \"line\"");
    }
    let id = one.text_at("id", false);
    let id = if id.is_empty() { crate::borders::key_from(&name) } else { id };
    let note = one.text_at("note", false);
    let tolerance = tolerance as f32;
    (Class { name, id, kind, colours, points, tolerance, low_m, high_m, height_m, part_of: None, within, note }, parent)
}

impl Table<'_> {
    fn optional_number(&mut self, key: &str) -> Option<f64> {
        if self.has(key) { self.number_at(key) } else { None }
    }

    /// Numbers of an array; `None`, and said, where it is something else.
    fn numbers_at(&mut self, key: &str) -> Option<Vec<f64>> {
        let value = self.table.get(key)?.get_ref();
        let found = numbers_of(value);
        if found.is_none() {
            self.say(key, described(value), "an array of numbers");
        }
        found
    }

    fn colours_at(&mut self, key: &str) -> Vec<Rgb> {
        let texts: Vec<String> = match self.table.get(key).map(|v| v.get_ref()) {
            None => return Vec::new(),
            Some(DeValue::String(s)) => vec![s.to_string()],
            Some(_) => self.texts_at(key, true, "a colour such as \"#b6dcf4\", or several in an array"),
        };
        let mut colours = Vec::new();
        for text in texts {
            match from_hex(&text) {
                Some(colour) => colours.push(colour),
                None => self.say(
                    key,
                    format!("{} is no colour", shown(&text)),
                    "red, green, blue in hexadecimal, \"#b6dcf4\"",
                ),
            }
        }
        colours
    }

    /// Points, `[[x, y], ...]`.
    fn pairs_at(&mut self, key: &str) -> Vec<[f64; 2]> {
        let Some(value) = self.table.get(key).map(|v| v.get_ref()) else { return Vec::new() };
        match pairs_of(value).filter(|p| !p.is_empty()) {
            Some(pairs) => pairs,
            None => {
                self.say(key, described(value), "points, [[x, y], [x, y]]");
                Vec::new()
            }
        }
    }

    /// One ring of points, or an array of rings.
    fn rings_at(&mut self, key: &str) -> Vec<Vec<[f64; 2]>> {
        let Some(value) = self.table.get(key).map(|v| v.get_ref()) else { return Vec::new() };
        let one = pairs_of(value).map(|ring| vec![ring]);
        let rings = one.or_else(|| value.as_array()?.iter().map(|v| pairs_of(v.get_ref())).collect());
        match rings.filter(|r| !r.is_empty() && r.iter().all(|ring| ring.len() >= 3)) {
            Some(rings) => rings,
            None => {
                self.say(key, described(value), "a polygon, [[x, y], [x, y], [x, y]], or an array of polygons");
                Vec::new()
            }
        }
    }
}

fn numbers_of(value: &DeValue) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(|v| number(v.get_ref()).filter(|n| n.is_finite())).collect()
}

fn pairs_of(value: &DeValue) -> Option<Vec<[f64; 2]>> {
    value.as_array()?.iter().map(|v| <[f64; 2]>::try_from(numbers_of(v.get_ref())?).ok()).collect()
}

/// Pairs of classes whose tolerances overlap, in words: pixels between them go to the nearer colour.
pub(super) fn overlaps(legend: &Legend) -> Vec<String> {
    let mut said = Vec::new();
    for (i, a) in legend.classes.iter().enumerate() {
        for b in &legend.classes[i + 1..] {
            let nearest = a
                .colours
                .iter()
                .flat_map(|x| b.colours.iter().map(move |y| (x, y)))
                .map(|(x, y)| (Lab::of(*x).distance(Lab::of(*y), legend.lightness), x, y))
                .min_by(|p, q| p.0.total_cmp(&q.0));
            if let Some((distance, x, y)) = nearest.filter(|n| n.0 < a.tolerance + b.tolerance) {
                said.push(format!(
                    "the tolerances of '{}' ({}) and '{}' ({}) overlap: {} + {} for a distance of {distance:.1}; what lies \
                     between goes to the nearer colour",
                    a.name,
                    to_hex(*x),
                    b.name,
                    to_hex(*y),
                    a.tolerance,
                    b.tolerance
                ));
            }
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        Legend::parse(text, "legend.toml").unwrap_err().to_string()
    }

    #[test]
    fn a_whole_legend_is_read() {
        let text = r##"
            lightness = 0.5
            coordinates = "map"
            [[class]]
            name = "Kingdom of Georgia"
            kind = "polity"
            colour = ["#a81a1a", "#a00"]
            tolerance = 4
            [[class]]
            name = "Imereti"
            kind = "polity"
            part_of = "Kingdom of Georgia"
            within = [[1, 2], [3, 4], [5, 0.5]]
            [[class]]
            name = "plain"
            kind = "elevation"
            points = [[10, 20]]
            low_m = 0
            high_m = 200
            [[class]]
            name = "100 m"
            kind = "line"
            colour = "#884400"
            height_m = 100
            [[leave_out]]
            box = [0, 0, 10, 20]
        "##;
        let legend = Legend::parse(text, "legend.toml").unwrap();
        assert_eq!(legend.lightness, 0.5);
        assert_eq!(legend.coordinates, Coordinates::Map);
        let [georgia, imereti, plain, line] = &legend.classes[..] else { panic!() };
        assert_eq!((georgia.id.as_str(), georgia.colours.len(), georgia.tolerance), ("kingdom-of-georgia", 2, 4.0));
        assert_eq!((imereti.part_of, imereti.within.len()), (Some(0), 1));
        assert_eq!((plain.low_m, plain.high_m, plain.points.as_slice()), (Some(0.0), Some(200.0), &[[10.0, 20.0]][..]));
        assert_eq!(line.height_m, Some(100.0));
        assert_eq!(legend.leave_out, [vec![[0.0, 0.0], [10.0, 0.0], [10.0, 20.0], [0.0, 20.0]]]);
    }

    #[test]
    fn every_problem_is_said_at_its_line() {
        let said = problems(
            "[[class]]\nname = \"A\"\nkind = \"polty\"\ncolor = \"#fff\"\n[[class]]\nname = \"A\"\nkind = \"elevation\"\n\
             colour = \"blue\"\nlow_m = 200\nhigh_m = 100\ntolerance = -1\n",
        );
        for words in [
            "line 3",
            "did you mean 'polity'?",
            "line 4",
            "did you mean 'colour'?",
            "'A' stands twice",
            "'blue' is no colour",
            "200 is not below high_m",
            "tolerance",
        ] {
            assert!(said.contains(words), "no '{words}' in {said}");
        }
    }

    #[test]
    fn kinds_have_what_they_need() {
        let class = |rest: &str| format!("[[class]]\nname = \"A\"\n{rest}");
        for (rest, words) in [
            ("kind = \"elevation\"\ncolour = \"#fff\"", "low_m"),
            ("kind = \"water\"\ncolour = \"#fff\"\nlow_m = 1", "kind = \"elevation\""),
            ("kind = \"water\"\ncolour = \"#fff\"\nheight_m = 1", "kind = \"line\""),
            ("kind = \"water\"", "a colour such as"),
            ("kind = \"polity\"\npart_of = \"B\"\nwithin = [[0,0],[1,0],[1,1]]", "no class of this legend"),
            ("kind = \"polity\"\npart_of = \"A\"\nwithin = [[0,0],[1,0]]", "a polygon"),
            ("colour = \"#fff\"", "kind"),
            ("kind = \"land\"\ncolour = []", "empty"),
            ("kind = \"land\"\ncolour = \"#fff\"\n[[leave_out]]\nbox = [1,2,3]", "four"),
        ] {
            assert!(problems(&class(rest)).contains(words), "{rest}: {}", problems(&class(rest)));
        }
        assert!(problems("").contains("[[class]]"));
        assert!(problems("[[class]").contains("line 1"));
    }

    #[test]
    fn overlapping_tolerances_are_said() {
        let text = "[[class]]\nname='A'\nkind='land'\ncolour='#808080'\n[[class]]\nname='B'\nkind='land'\ncolour='#888888'\n\
                    [[class]]\nname='C'\nkind='land'\ncolour='#ff0000'\n";
        let said = overlaps(&Legend::parse(text, "l").unwrap());
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("'A'") && said[0].contains("'B'") && said[0].contains("nearer"), "{said:?}");
    }
}
