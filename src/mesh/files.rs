//! The bytes of mesh files: glTF binary, OBJ, STL, PLY.
//!
//! In glTF y is up and south is z, as its specification (2.0, Khronos Group 2021) wants; the others keep east, north and up as x, y, z.
//! Parts that are no surface get vertices of their own in glTF, with the normals of their faces, so that edges stay sharp.

use super::{Mesh, Part, PartKind};
use crate::error::{Error, Result};
use gltf_json as json;
use json::validation::{Checked::Valid, USize64};
use std::borrow::Cow;
use std::fmt::Write;

/// A picture to lay over the surface.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// PNG or JPEG file.
    pub bytes: Vec<u8>,
    /// `image/png` or `image/jpeg`.
    pub mime: &'static str,
}

/// Light that a colour byte stands for, 0 to 1 (IEC 61966-2-1).
fn linear(byte: u8) -> f32 {
    let v = f32::from(byte) / 255.0;
    if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
}

/// Builds the lists of a glTF file and its one buffer.
#[derive(Default)]
struct Builder {
    root: json::Root,
    bytes: Vec<u8>,
}

impl Builder {
    fn view(&mut self, bytes: &[u8], target: Option<json::buffer::Target>) -> json::Index<json::buffer::View> {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.root.push(json::buffer::View {
            buffer: json::Index::new(0),
            byte_length: USize64::from(bytes.len()),
            byte_offset: Some(USize64::from(offset)),
            byte_stride: None,
            name: None,
            target: target.map(Valid),
            extensions: Default::default(),
            extras: Default::default(),
        })
    }

    fn accessor(
        &mut self,
        bytes: &[u8],
        (count, component, kind): (usize, json::accessor::ComponentType, json::accessor::Type),
        target: json::buffer::Target,
        range: Option<(Vec<f32>, Vec<f32>)>,
        normalized: bool,
    ) -> json::Index<json::Accessor> {
        let view = self.view(bytes, Some(target));
        let (min, max) = range.map_or((None, None), |(a, b)| (Some(json::Value::from(a)), Some(json::Value::from(b))));
        self.root.push(json::Accessor {
            buffer_view: Some(view),
            byte_offset: None,
            count: USize64::from(count),
            component_type: Valid(json::accessor::GenericComponentType(component)),
            extensions: Default::default(),
            extras: Default::default(),
            type_: Valid(kind),
            min,
            max,
            name: None,
            normalized,
            sparse: None,
        })
    }

    fn floats<const N: usize>(&mut self, values: &[[f32; N]], with_range: bool) -> json::Index<json::Accessor> {
        let bytes: Vec<u8> = values.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        let range = with_range.then(|| {
            let fold = |f: fn(f32, f32) -> f32| {
                (0..N).map(|k| values.iter().map(|v| v[k]).reduce(f).unwrap_or(0.0)).collect::<Vec<f32>>()
            };
            (fold(f32::min), fold(f32::max))
        });
        let kind = if N == 2 { json::accessor::Type::Vec2 } else { json::accessor::Type::Vec3 };
        let form = (values.len(), json::accessor::ComponentType::F32, kind);
        self.accessor(&bytes, form, json::buffer::Target::ArrayBuffer, range, false)
    }

    fn colours(&mut self, values: &[[u8; 3]]) -> json::Index<json::Accessor> {
        let level = |v: u8| ((linear(v) * 65_535.0).round() as u16).to_le_bytes();
        let bytes: Vec<u8> =
            values.iter().flat_map(|[r, g, b]| [level(*r), level(*g), level(*b), [255, 255]].concat()).collect();
        let form = (values.len(), json::accessor::ComponentType::U16, json::accessor::Type::Vec4);
        self.accessor(&bytes, form, json::buffer::Target::ArrayBuffer, None, true)
    }

    fn indices(&mut self, triangles: &[[u32; 3]]) -> json::Index<json::Accessor> {
        let bytes: Vec<u8> = triangles.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        let form = (3 * triangles.len(), json::accessor::ComponentType::U32, json::accessor::Type::Scalar);
        self.accessor(&bytes, form, json::buffer::Target::ElementArrayBuffer, None, false)
    }

    /// A dull material.
    fn material(
        &mut self,
        colour: Option<[u8; 3]>,
        texture: Option<json::Index<json::Texture>>,
    ) -> json::Index<json::Material> {
        let [r, g, b] = colour.unwrap_or([255; 3]).map(linear);
        self.root.push(json::Material {
            pbr_metallic_roughness: json::material::PbrMetallicRoughness {
                base_color_factor: json::material::PbrBaseColorFactor([r, g, b, 1.0]),
                base_color_texture: texture.map(|index| json::texture::Info {
                    index,
                    tex_coord: 0,
                    extensions: Default::default(),
                    extras: Default::default(),
                }),
                metallic_factor: json::material::StrengthFactor(0.0),
                roughness_factor: json::material::StrengthFactor(1.0),
                ..Default::default()
            },
            ..Default::default()
        })
    }
}

/// A glTF binary: one node for each part, under the name of the part.
///
/// # Errors
/// [`Error::Argument`] when there is no triangle, or more than the format's 4 GiB.
pub fn glb(mesh: &Mesh, picture: Option<&Picture>) -> Result<Vec<u8>> {
    check(mesh)?;
    let mut b = Builder::default();
    let y_up = |p: &[f64; 3]| [p[0] as f32, p[2] as f32, -p[1] as f32];
    let texture = picture.filter(|_| !mesh.uvs.is_empty()).map(|p| {
        let view = b.view(&p.bytes, None);
        let source = b.root.push(json::Image {
            buffer_view: Some(view),
            mime_type: Some(json::image::MimeType(p.mime.into())),
            name: None,
            uri: None,
            extensions: Default::default(),
            extras: Default::default(),
        });
        let edge = Valid(json::texture::WrappingMode::ClampToEdge);
        let sampler = b.root.push(json::texture::Sampler {
            mag_filter: Some(Valid(json::texture::MagFilter::Linear)),
            min_filter: Some(Valid(json::texture::MinFilter::LinearMipmapLinear)),
            wrap_s: edge,
            wrap_t: edge,
            ..Default::default()
        });
        b.root.push(json::Texture {
            name: None,
            sampler: Some(sampler),
            source,
            extensions: Default::default(),
            extras: Default::default(),
        })
    });

    // What all surfaces share.
    let mut shared = std::collections::BTreeMap::new();
    let used: usize = mesh
        .parts
        .iter()
        .filter(|p| p.kind == PartKind::Surface)
        .flat_map(|p| p.triangles.iter().flatten())
        .max()
        .map_or(0, |v| *v as usize + 1);
    if used > 0 {
        let positions: Vec<[f32; 3]> = mesh.positions[..used].iter().map(y_up).collect();
        let normals: Vec<[f32; 3]> = mesh.normals()[..used].iter().map(y_up).collect();
        shared.insert(Valid(json::mesh::Semantic::Positions), b.floats(&positions, true));
        shared.insert(Valid(json::mesh::Semantic::Normals), b.floats(&normals, false));
        if texture.is_some() {
            shared.insert(Valid(json::mesh::Semantic::TexCoords(0)), b.floats(&mesh.uvs[..used], false));
        } else if !mesh.colours.is_empty() {
            shared.insert(Valid(json::mesh::Semantic::Colors(0)), b.colours(&mesh.colours[..used]));
        }
    }
    let mut materials = std::collections::BTreeMap::new();
    let mut nodes = Vec::new();
    for part in mesh.parts.iter().filter(|p| !p.triangles.is_empty()) {
        let is_surface = part.kind == PartKind::Surface;
        let look = (part.colour, is_surface);
        let colour = if is_surface { part.colour } else { part.colour.or(Some([150, 140, 128])) };
        let material = *materials.entry(look).or_insert_with(|| b.material(colour, texture.filter(|_| is_surface)));
        let (attributes, indices) = if is_surface {
            (shared.clone(), b.indices(&part.triangles))
        } else {
            let flat = |v: &u32| y_up(&mesh.positions[*v as usize]);
            let positions: Vec<[f32; 3]> = part.triangles.iter().flatten().map(flat).collect();
            let normals: Vec<[f32; 3]> =
                part.triangles.iter().flat_map(|t| [y_up(&super::unit(mesh.cross(t))); 3]).collect();
            let own: Vec<[u32; 3]> = (0..part.triangles.len() as u32).map(|k| [3 * k, 3 * k + 1, 3 * k + 2]).collect();
            let attributes = [
                (Valid(json::mesh::Semantic::Positions), b.floats(&positions, true)),
                (Valid(json::mesh::Semantic::Normals), b.floats(&normals, false)),
            ];
            (attributes.into_iter().collect(), b.indices(&own))
        };
        let primitive = json::mesh::Primitive {
            attributes,
            indices: Some(indices),
            material: Some(material),
            mode: Valid(json::mesh::Mode::Triangles),
            targets: None,
            extensions: Default::default(),
            extras: Default::default(),
        };
        let mesh = b.root.push(json::Mesh {
            name: Some(part.name.clone()),
            primitives: vec![primitive],
            weights: None,
            extensions: Default::default(),
            extras: Default::default(),
        });
        nodes.push(b.root.push(json::Node { name: Some(part.name.clone()), mesh: Some(mesh), ..Default::default() }));
    }
    let scene =
        b.root.push(json::Scene { name: None, nodes, extensions: Default::default(), extras: Default::default() });
    b.root.scene = Some(scene);
    b.root.asset.generator = Some(format!("histmap {}", env!("CARGO_PKG_VERSION")));
    while !b.bytes.len().is_multiple_of(4) {
        b.bytes.push(0);
    }
    b.root.buffers.push(json::Buffer {
        byte_length: USize64::from(b.bytes.len()),
        name: None,
        uri: None,
        extensions: Default::default(),
        extras: Default::default(),
    });
    let mut text = b.root.to_vec().map_err(|e| Error::argument("mesh", e, "give a smaller one"))?;
    while !text.len().is_multiple_of(4) {
        text.push(b' ');
    }
    let whole = 12 + 8 + text.len() + 8 + b.bytes.len();
    let Ok(length) = u32::try_from(whole) else {
        return Err(Error::argument("mesh", format!("{whole} bytes"), "glTF holds 4 GiB: give a larger --max-error"));
    };
    let mut file = Vec::with_capacity(whole);
    let chunk = |file: &mut Vec<u8>, kind: &[u8; 4], bytes: &[u8]| {
        file.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        file.extend_from_slice(kind);
        file.extend_from_slice(bytes);
    };
    file.extend_from_slice(b"glTF");
    file.extend_from_slice(&2u32.to_le_bytes());
    file.extend_from_slice(&length.to_le_bytes());
    chunk(&mut file, b"JSON", &text);
    chunk(&mut file, b"BIN\0", &b.bytes);
    Ok(file)
}

fn check(mesh: &Mesh) -> Result<()> {
    if mesh.is_empty() {
        return Err(Error::argument(
            "mesh",
            "no triangle",
            "give a raster with four neighbouring cells that have values",
        ));
    }
    Ok(())
}

/// An OBJ file and its MTL file, which it calls `material_file`; `picture_file` is the picture's name.
///
/// # Errors
/// [`Error::Argument`] when there is no triangle.
pub fn obj(mesh: &Mesh, material_file: &str, picture_file: Option<&str>) -> Result<(Vec<u8>, Vec<u8>)> {
    check(mesh)?;
    let mut out = String::with_capacity(mesh.positions.len() * 40 + mesh.len() * 30);
    let has_uv = picture_file.is_some() && !mesh.uvs.is_empty();
    // A String takes what is written.
    let _ = writeln!(out, "# histmap {}: x east, y north, z up\nmtllib {material_file}", env!("CARGO_PKG_VERSION"));
    for (k, [x, y, z]) in mesh.positions.iter().enumerate() {
        let _ = match mesh.colours.get(k) {
            // The customary extension: colours behind coordinates.
            Some(c) if !has_uv => {
                let [r, g, b] = c.map(|v| f32::from(v) / 255.0);
                writeln!(out, "v {x:.4} {y:.4} {z:.4} {r:.3} {g:.3} {b:.3}")
            }
            _ => writeln!(out, "v {x:.4} {y:.4} {z:.4}"),
        };
    }
    if has_uv {
        for [u, v] in &mesh.uvs {
            let _ = writeln!(out, "vt {u:.6} {:.6}", 1.0 - v);
        }
    }
    let mut materials = String::new();
    let mut known = Vec::new();
    for part in mesh.parts.iter().filter(|p| !p.triangles.is_empty()) {
        let is_laid = has_uv && part.kind == PartKind::Surface;
        let colour = colour_of(part);
        let name = match is_laid {
            true => "picture".to_string(),
            false => format!("colour-{:02x}{:02x}{:02x}", colour[0], colour[1], colour[2]),
        };
        if !known.contains(&name) {
            let [r, g, b] = if is_laid { [1.0; 3] } else { colour.map(|v| f32::from(v) / 255.0) };
            let _ = writeln!(materials, "newmtl {name}\nKd {r:.4} {g:.4} {b:.4}\nKa 0 0 0\nKs 0 0 0\nillum 1");
            if let Some(file) = picture_file.filter(|_| is_laid) {
                let _ = writeln!(materials, "map_Kd {file}");
            }
            known.push(name.clone());
        }
        let plain: String = part.name.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        let _ = writeln!(out, "g {plain}\nusemtl {name}");
        for t in &part.triangles {
            let [a, b, c] = t.map(|v| v + 1);
            let _ = match is_laid {
                true => writeln!(out, "f {a}/{a} {b}/{b} {c}/{c}"),
                false => writeln!(out, "f {a} {b} {c}"),
            };
        }
    }
    Ok((out.into_bytes(), materials.into_bytes()))
}

fn colour_of(part: &Part) -> [u8; 3] {
    part.colour.unwrap_or(if part.kind == PartKind::Surface { [255; 3] } else { [150, 140, 128] })
}

/// A binary STL file.
///
/// # Errors
/// [`Error::Argument`] when there is no triangle.
pub fn stl(mesh: &Mesh) -> Result<Vec<u8>> {
    check(mesh)?;
    let mut out = Vec::with_capacity(84 + 50 * mesh.len());
    let mut head = [b' '; 80];
    let title = format!("histmap {}: x east, y north, z up", env!("CARGO_PKG_VERSION"));
    head[..title.len()].copy_from_slice(title.as_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(&(mesh.len() as u32).to_le_bytes());
    for t in mesh.parts.iter().flat_map(|p| &p.triangles) {
        let normal = super::unit(mesh.cross(t));
        for v in [normal].into_iter().chain(t.map(|v| mesh.positions[v as usize])) {
            v.iter().for_each(|c| out.extend_from_slice(&(*c as f32).to_le_bytes()));
        }
        out.extend_from_slice(&[0, 0]);
    }
    Ok(out)
}

/// A binary PLY file: colours of vertices where the mesh has them, else of faces where its parts have them.
///
/// # Errors
/// [`Error::Argument`] when there is no triangle.
pub fn ply(mesh: &Mesh) -> Result<Vec<u8>> {
    check(mesh)?;
    let has_vertex_colours = !mesh.colours.is_empty();
    let has_face_colours = !has_vertex_colours && mesh.parts.iter().any(|p| p.colour.is_some());
    let colour = "property uchar red\nproperty uchar green\nproperty uchar blue\n";
    let mut out = format!(
        "ply\nformat binary_little_endian 1.0\ncomment histmap {}: x east, y north, z up\nelement vertex {}\nproperty float \
         x\nproperty float y\nproperty float z\n{}element face {}\nproperty list uchar uint vertex_indices\n{}end_header\n",
        env!("CARGO_PKG_VERSION"),
        mesh.positions.len(),
        if has_vertex_colours { colour } else { "" },
        mesh.len(),
        if has_face_colours { colour } else { "" },
    )
    .into_bytes();
    for (k, p) in mesh.positions.iter().enumerate() {
        p.iter().for_each(|c| out.extend_from_slice(&(*c as f32).to_le_bytes()));
        if let Some(c) = mesh.colours.get(k) {
            out.extend_from_slice(c);
        }
    }
    for part in &mesh.parts {
        let colour = colour_of(part);
        for t in &part.triangles {
            out.push(3);
            t.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
            if has_face_colours {
                out.extend_from_slice(&colour);
            }
        }
    }
    Ok(out)
}

/// The ending that a file has, as one of those that can be written.
pub fn ending(name: &str) -> Option<Cow<'static, str>> {
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    ["glb", "obj", "stl", "ply"].into_iter().find(|e| *e == ending).map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triangle() -> Mesh {
        Mesh {
            positions: vec![[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.0, 3.0, 1.0]],
            parts: vec![Part {
                name: "a b".into(),
                kind: PartKind::Surface,
                colour: Some([255, 0, 0]),
                triangles: vec![[0, 1, 2]],
            }],
            ..Mesh::default()
        }
    }

    #[test]
    fn stl_by_hand() {
        let bytes = stl(&triangle()).unwrap();
        assert_eq!(bytes.len(), 84 + 50);
        assert_eq!(bytes[80..84], 1u32.to_le_bytes());
        let f = |k: usize| f32::from_le_bytes([bytes[k], bytes[k + 1], bytes[k + 2], bytes[k + 3]]);
        let values: Vec<f32> = (0..12).map(|k| f(84 + 4 * k)).collect();
        assert_eq!(values, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 0.0, 3.0, 1.0]);
    }

    #[test]
    fn obj_names_parts_and_colours() {
        let (obj, mtl) = obj(&triangle(), "a.mtl", None).unwrap();
        let obj = String::from_utf8(obj).unwrap();
        assert!(obj.contains("mtllib a.mtl") && obj.contains("g a_b\nusemtl colour-ff0000\nf 1 2 3\n"), "{obj}");
        assert!(String::from_utf8(mtl).unwrap().contains("newmtl colour-ff0000\nKd 1.0000 0.0000 0.0000"));
    }

    #[test]
    fn ply_has_a_colour_for_each_face() {
        let bytes = ply(&triangle()).unwrap();
        let end = bytes.windows(11).position(|w| w == b"end_header\n").unwrap() + 11;
        assert_eq!(bytes.len() - end, 3 * 12 + 1 + 12 + 3);
        assert_eq!(bytes[bytes.len() - 3..], [255, 0, 0]);
    }

    #[test]
    fn north_is_minus_z_in_gltf() {
        let bytes = glb(&triangle(), None).unwrap();
        assert_eq!(bytes[..4], *b"glTF");
        let n = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
        let root: serde_json::Value = serde_json::from_slice(&bytes[20..20 + n]).unwrap();
        assert_eq!(root["accessors"][0]["min"], serde_json::json!([0.0, 1.0, -3.0]));
        assert_eq!(root["accessors"][0]["max"], serde_json::json!([2.0, 1.0, 0.0]));
        assert_eq!(root["meshes"][0]["name"], "a b");
    }

    #[test]
    fn a_mesh_of_nothing_is_refused() {
        let none = Mesh::default();
        assert!(
            glb(&none, None).is_err() && stl(&none).is_err() && ply(&none).is_err() && obj(&none, "", None).is_err()
        );
    }

    #[test]
    fn endings_are_known_in_any_case() {
        assert_eq!(ending("a.GLB").as_deref(), Some("glb"));
        assert_eq!(ending("a.gltf"), None);
    }
}
