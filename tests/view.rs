//! `histmap view`: the page in a real headless Chromium, without network; the server; the exported folder.
//!
//! Tests of the page are left out, with a line that says so, where there is no Chromium (`chromium`, `chromium-browser`,
//! `google-chrome`, or what the variable CHROMIUM names).

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_histmap");

fn histmap(folder: &Path, args: &[&str]) -> Output {
    Command::new(BINARY).current_dir(folder).args(args).output().unwrap()
}

fn made(folder: &Path, args: &[&str]) {
    let out = histmap(folder, args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A build of two eras, 1100 and 1200: one polity in both, and east of it another in each.
fn build(dir: &Path) {
    let area = |id: &str, from: i32, to: i32, west: f64, east: f64| {
        let ring = [[west, 41.0], [east, 41.0], [east, 42.4], [west, 42.4], [west, 41.0]];
        json!({
            "type": "Feature",
            "properties": {
                "id": id, "name": format!("Realm {id}"), "from_year": from, "to_year": to, "kind": "polity",
                "parent": null, "certainty": "approximate", "source": ["made-up"],
            },
            "geometry": { "type": "Polygon", "coordinates": [ring] },
        })
    };
    let features = [
        area("west", 1000, 1300, 43.0, 44.6),
        area("early", 1000, 1150, 44.6, 46.0),
        area("late", 1151, 1300, 44.6, 46.0),
    ];
    let pack = dir.join("packs/kartli");
    std::fs::create_dir_all(&pack).unwrap();
    std::fs::write(
        pack.join("polities.geojson"),
        json!({"type": "FeatureCollection", "features": features}).to_string(),
    )
    .unwrap();
    let toml = "name = \"kartli\"\ntitle = \"Kartli\"\ncrs = \"EPSG:32638\"\nresolution_m = 1000\n\
                [extent]\nwest = 43.9\nsouth = 41.2\neast = 45.3\nnorth = 42.2\n\
                [layers]\npolities = [\"polities.geojson\"]\n\
                [[sources]]\nid = \"made-up\"\ncitation = \"Made up for a test.\"\nlicence = \"CC0-1.0\"\n";
    std::fs::write(pack.join("region.toml"), toml).unwrap();
    made(dir, &["build", "kartli", "--maps", "packs", "--era", "1100,1200", "--out", "out", "--map-px", "300"]);
}

fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let known = ["chromium", "chromium-browser", "google-chrome"].map(PathBuf::from);
    let found = named.into_iter().chain(known).find(|p| {
        Command::new(p).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    });
    if found.is_none() {
        println!("left out: no Chromium here");
    }
    found
}

/// What `script`, an async function's body that runs when the page is ready, returns: the page is opened in a headless browser that
/// reaches no network.
fn in_browser(browser: &Path, folder: &Path, hash: &str, script: &str) -> Value {
    let page = std::fs::read_to_string(folder.join("index.html")).unwrap();
    let probe = format!(
        "<script>(async () => {{
            const pause = (ms) => new Promise((done) => setTimeout(done, ms));
            const errors = [];
            window.addEventListener('error', (e) => errors.push(e.message));
            for (let k = 0; k < 600 && !document.documentElement.dataset.state; k++) await pause(50);
            let found;
            try {{
                if (document.documentElement.dataset.state !== 'ready') throw new Error(document.getElementById('loading').textContent);
                found = await (async () => {{ {script} }})();
            }} catch (e) {{ found = {{ failed: String(e) }}; }}
            if (errors.length) found = {{ failed: errors.join('; ') }};
            const out = document.createElement('pre');
            out.id = 'found';
            out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(found))));
            document.body.append(out);
        }})();</script></body>"
    );
    std::fs::write(folder.join("probe.html"), page.replace("</body>", &probe)).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run", "--window-size=1200,800"])
        .args(["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--allow-file-access-from-files"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("file://{}{hash}", folder.join("probe.html").display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&out.stdout).into_owned();
    let coded = dom.split("<pre id=\"found\">").nth(1).and_then(|t| t.split('<').next());
    let coded = coded.unwrap_or_else(|| panic!("no answer: {dom:.2000}\n{}", String::from_utf8_lossy(&out.stderr)));
    let value: Value = serde_json::from_slice(&decoded(coded)).unwrap();
    assert!(value["failed"].is_null(), "{value}");
    value
}

/// Bytes of a base64 text.
fn decoded(text: &str) -> Vec<u8> {
    let digit =
        |c: u8| b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|d| *d == c);
    let digits: Vec<u32> = text.bytes().filter_map(digit).map(|d| d as u32).collect();
    let mut out = Vec::new();
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0, |b, d| b << 6 | d) << (6 * (4 - group.len()));
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    out
}

/// gdallocationinfo -valonly FILE COL ROW.
fn gdal_value(file: &Path, col: usize, row: usize) -> f64 {
    let out =
        Command::new("gdallocationinfo").arg("-valonly").arg(file).args([col.to_string(), row.to_string()]).output();
    String::from_utf8_lossy(&out.unwrap().stdout).lines().next().unwrap().trim().parse().unwrap()
}

/// Colours that differ in what is drawn, and a sum by which two pictures are told apart.
const LOOK: &str = "
    const look = () => {
        // Frames are rare in a browser without a screen, and its time is not ours: this one is drawn now.
        histmapView.frame();
        const c = document.getElementById('scene');
        const copy = document.createElement('canvas');
        [copy.width, copy.height] = [c.width, c.height];
        const g = copy.getContext('2d');
        g.drawImage(c, 0, 0);
        const p = g.getImageData(0, 0, c.width, c.height).data;
        const colours = new Set();
        let sum = 0;
        for (let k = 0; k < p.length; k += 4) {
            colours.add(p[k] << 16 | p[k + 1] << 8 | p[k + 2]);
            sum = (sum * 31 + p[k] + 3 * p[k + 1] + 7 * p[k + 2]) % 4294967291;
        }
        return { colours: colours.size, sum };
    };
    const set = async (id, value) => {
        const e = document.getElementById(id);
        e.value = value;
        e.dispatchEvent(new Event('input', { bubbles: true }));
        await pause(400);
    };
    const hover = (col, row) => {
        const [x, y] = histmapView.onScreen(col, row);
        const canvas = document.getElementById('scene');
        canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: x, clientY: y, bubbles: true }));
        return document.getElementById('tip').textContent.split('\\n');
    };
    const legend = () => [...document.querySelectorAll('#legend li span')].map((s) => s.firstChild.textContent);
";

#[test]
fn the_page_of_a_build_in_a_browser() {
    let Some(browser) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    build(dir);
    made(dir, &["view", "out", "--export", "page"]);
    let script = format!(
        "{LOOK}
        const before = look();
        const early = legend();
        const exaggeration = Number(document.getElementById('exaggeration').value);
        const cells = [[60, 50], [20, 30], [90, 80]];
        const tips = cells.map(([c, r]) => hover(c, r));
        await set('year', 1200);
        const after = look();
        const late = legend();
        const east = hover(100, 60);
        await set('year', 1100);
        const again = look();
        document.getElementById('layer-contours').click();
        await pause(400);
        const lines = look();
        await set('azimuth', 90);
        const lit = look();
        document.getElementById('fly').click();
        const canvas = document.getElementById('scene');
        canvas.dispatchEvent(new KeyboardEvent('keydown', {{ code: 'KeyW' }}));
        const flown = look();
        window.dispatchEvent(new KeyboardEvent('keyup', {{ code: 'KeyW' }}));
        await pause(400);
        return {{ before, early, tips, after, late, east, again, lines, lit, flown, hash: location.hash, title: document.title }};"
    );
    let found = in_browser(&browser, &dir.join("page"), "", &script);
    let sum = |key: &str| found[key]["sum"].as_f64().unwrap();
    assert!(found["before"]["colours"].as_u64().unwrap() > 500, "the canvas is blank: {found}");
    // The slider changes the polities, and back.
    assert_eq!(found["early"], json!(["Realm early", "Realm west"]));
    assert_eq!(found["late"], json!(["Realm late", "Realm west"]));
    assert_eq!(found["east"][0], "Realm late");
    assert!(sum("before") != sum("after") && sum("again") == sum("before"), "{found}");
    for key in ["lines", "lit", "flown"] {
        assert!(sum(key) != sum("before"), "{key} changes nothing");
    }
    // What hovering says is what the GeoTIFF has there.
    for (n, (col, row)) in [(60, 50), (20, 30), (90, 80)].into_iter().enumerate() {
        let tip = &found["tips"][n];
        let lines: Vec<&str> = tip.as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
        let cell: Vec<usize> = lines[3].split(|c: char| !c.is_ascii_digit()).filter_map(|w| w.parse().ok()).collect();
        // A slope between may hide the cell's middle: the page says which cell it is.
        assert!(cell[0].abs_diff(col) <= 1 && cell[1].abs_diff(row) <= 1, "{tip} for {col}, {row}");
        let said: f64 = lines[1].trim_end_matches(" m").parse().unwrap();
        let is = gdal_value(&dir.join("out/elevation.tif"), cell[0], cell[1]);
        assert!((said - is).abs() <= 0.06, "{tip}: the GeoTIFF has {is}");
        let code = gdal_value(&dir.join("out/1100/regions.tif"), cell[0], cell[1]);
        assert_eq!(lines[0] == "unclaimed", code == 0.0, "{tip}");
    }
    assert!(found["title"].as_str().unwrap().contains("Kartli"));
    // The address keeps the view: opened again, it shows the same.
    let hash = found["hash"].as_str().unwrap();
    assert!(hash.contains("y=1100") && hash.contains("contours") && hash.contains("a=90"), "{hash}");
    let script = format!("{LOOK} await pause(400); return {{ look: look(), hash: location.hash }};");
    let kept = in_browser(&browser, &dir.join("page"), &hash.replace("y=1100", "y=1200"), &script);
    assert!(kept["look"]["colours"].as_u64().unwrap() > 100, "{kept}");
    assert_eq!(kept["hash"].as_str().unwrap(), hash.replace("y=1100", "y=1200"));
}

#[test]
fn heightmaps_and_meshes_open_too() {
    let Some(browser) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    made(dir, &["heightmap", "diamond-square", "--size", "65", "--seed", "4", "--filter", "normalise=0,20", "a.tif"]);
    made(dir, &["heightmap", "file", "a.tif", "a.raw"]);
    for name in ["a.glb", "a.obj", "a.stl", "a.ply"] {
        made(dir, &["mesh", "a.tif", name, "--max-error", "0.2"]);
    }
    for name in ["a.raw", "a.glb", "a.obj", "a.stl", "a.ply"] {
        made(dir, &["view", name, "--export", "page", "--overwrite"]);
        let script = format!(
            "{LOOK}
            const canvas = document.getElementById('scene');
            canvas.dispatchEvent(new PointerEvent('pointermove', {{ clientX: 753, clientY: 420, bubbles: true }}));
            return {{ look: look(), tip: document.getElementById('tip').textContent }};"
        );
        let found = in_browser(&browser, &dir.join("page"), "", &script);
        assert!(found["look"]["colours"].as_u64().unwrap() > 50, "{name}: {found}");
        let tip = found["tip"].as_str().unwrap();
        assert!(tip.contains(" m\n") || tip.contains("height "), "{name}: {tip}");
    }
}

/// What the server answers to a request.
fn ask(address: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut out = Vec::new();
    stream.read_to_end(&mut out).unwrap();
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn the_server_is_on_loopback_and_serves_the_page_alone() {
    let folder = tempfile::tempdir().unwrap();
    made(folder.path(), &["heightmap", "fault", "--size", "40", "a.tif"]);
    let mut server = Command::new(BINARY)
        .current_dir(folder.path())
        .args(["view", "a.tif", "--no-open"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_string();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    let page = ask(&address, &format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let data = ask(&address, &format!("GET /data.js HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let other = ask(&address, &format!("GET /../a.tif HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let foreign = ask(&address, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("<canvas"), "{page:.300}");
    assert!(data.contains("window.HISTMAP") && data.contains("text/javascript"));
    assert!(other.starts_with("HTTP/1.1 404") && foreign.starts_with("HTTP/1.1 403"));
}

#[test]
fn odd_requests_are_refused_and_foreign_folders_stay() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    made(dir, &["heightmap", "fault", "--size", "40", "a.tif"]);
    std::fs::create_dir(dir.join("mine")).unwrap();
    std::fs::write(dir.join("mine/letter.txt"), "dear").unwrap();
    std::fs::write(dir.join("a.glb"), "no mesh").unwrap();
    for (args, code, words) in [
        (&["view", "none.tif", "--export", "p"][..], 1, "none.tif"),
        (&["view", "mine", "--export", "p"], 1, "manifest.json"),
        (&["view", "a.glb", "--export", "p"], 1, "whole .glb"),
        (&["view", "a.tif", "--export", "mine"], 1, "--overwrite"),
        (&["view", "a.tif", "--export", "mine", "--overwrite"], 2, "no page"),
        (&["view", "a.tif", "--export", "no/such/p"], 1, "no folder"),
    ] {
        let out = histmap(dir, args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
        assert!(!dir.join("p").exists());
    }
    assert_eq!(std::fs::read_to_string(dir.join("mine/letter.txt")).unwrap(), "dear");
}
