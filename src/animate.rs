//! Map sheets in a row as one moving picture: GIF, APNG or WebP. Same frames, same bytes.
//!
//! Frames wait on the disk, not in memory. After the first, a frame holds only the pixels that changed: the ground of a
//! series of eras is the same in all of them.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Format of a moving picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnimationKind {
    /// 255 colours, shown by every program.
    Gif,
    /// All colours; shown by browsers, as a still picture elsewhere.
    Apng,
    /// All colours, without loss; shown by browsers and many viewers.
    WebP,
}

impl AnimationKind {
    /// All of them.
    pub const ALL: [AnimationKind; 3] = [AnimationKind::Gif, AnimationKind::Apng, AnimationKind::WebP];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            AnimationKind::Gif => "gif",
            AnimationKind::Apng => "apng",
            AnimationKind::WebP => "webp",
        }
    }

    /// The kind of that name.
    pub fn named(word: &str) -> Option<AnimationKind> {
        AnimationKind::ALL.into_iter().find(|k| k.as_str() == word)
    }

    /// Name of the file that a build writes.
    pub fn file_name(self) -> &'static str {
        match self {
            AnimationKind::Gif => "animation.gif",
            AnimationKind::Apng => "animation.png",
            AnimationKind::WebP => "animation.webp",
        }
    }
}

/// Frames in order, on the disk; smaller ones are filled up at the right and below.
pub struct Frames {
    file: File,
    folder: std::path::PathBuf,
    sizes: Vec<(usize, usize)>,
    paper: [u8; 3],
}

impl Frames {
    /// No frames yet; a file without a name in `folder` holds them. `paper` fills up what is smaller.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn new(folder: &Path, paper: [u8; 3]) -> Result<Frames> {
        let file = tempfile::tempfile_in(folder).map_err(|e| Error::write(folder, e))?;
        Ok(Frames { file, folder: folder.to_path_buf(), sizes: Vec::new(), paper })
    }

    /// Adds a frame, `width` pixels in a row.
    ///
    /// # Errors
    /// [`Error::Write`] when the disk refuses.
    pub fn push(&mut self, rgb: &[[u8; 3]], width: usize) -> Result<()> {
        self.file.write_all(rgb.as_flattened()).map_err(|e| Error::write(&self.folder, e))?;
        self.sizes.push((width, rgb.len() / width.max(1)));
        Ok(())
    }

    /// Width and height of the whole picture.
    pub fn size(&self) -> (usize, usize) {
        self.sizes.iter().fold((0, 0), |(w, h), s| (w.max(s.0), h.max(s.1)))
    }

    /// Frame number `k`, filled up.
    fn frame(&mut self, k: usize) -> Result<Vec<[u8; 3]>> {
        let fail = |e| Error::read(&self.folder, e);
        let before: usize = self.sizes[..k].iter().map(|s| s.0 * s.1).sum();
        let ((width, height), (w, h)) = (self.size(), self.sizes[k]);
        self.file.seek(SeekFrom::Start(3 * before as u64)).map_err(fail)?;
        let mut own = vec![[0u8; 3]; w * h];
        self.file.read_exact(own.as_flattened_mut()).map_err(fail)?;
        if (w, h) == (width, height) {
            return Ok(own);
        }
        let mut all = vec![self.paper; width * height];
        for (to, from) in all.chunks_exact_mut(width).zip(own.chunks_exact(w)) {
            to[..w].copy_from_slice(from);
        }
        Ok(all)
    }

    /// The moving picture as a file of `kind`, each frame shown for `frame_ms`, again and again.
    ///
    /// # Errors
    /// [`Error::Argument`] without frames, or where the format does not take the size; [`Error::Read`].
    pub fn encode(&mut self, kind: AnimationKind, frame_ms: u32) -> Result<Vec<u8>> {
        let size = self.size();
        let refuse = |e: String| Error::argument("--animate", e, "choose smaller frames, or fewer eras");
        if self.sizes.is_empty() || size.0 == 0 || size.1 == 0 {
            return Err(refuse("there are no frames".to_string()));
        }
        if kind == AnimationKind::Gif && size.0.max(size.1) > usize::from(u16::MAX) {
            return Err(refuse(format!("{} x {} pixels do not fit a GIF", size.0, size.1)));
        }
        if kind == AnimationKind::WebP && size.0.max(size.1) > WEBP_MOST {
            return Err(refuse(format!("{} x {} pixels do not fit a WebP ({WEBP_MOST} at most)", size.0, size.1)));
        }
        match kind {
            AnimationKind::Gif => self.gif(frame_ms, &refuse),
            AnimationKind::Apng => self.apng(frame_ms, &refuse),
            AnimationKind::WebP => self.webp(frame_ms, &refuse),
        }
    }

    /// Lossless frames (VP8L) in the extended container of WebP ("WebP Container Specification", Google, 2012: VP8X, ANIM and
    /// ANMF chunks), each the part that changes.
    fn webp(&mut self, frame_ms: u32, refuse: &dyn Fn(String) -> Error) -> Result<Vec<u8>> {
        let (width, height) = self.size();
        let mut body = b"WEBP".to_vec();
        const IS_ANIMATED: u8 = 0x02;
        let mut head = vec![IS_ANIMATED, 0, 0, 0];
        head.extend(three_bytes(width - 1));
        head.extend(three_bytes(height - 1));
        riff_chunk(&mut body, b"VP8X", &head);
        let [r, g, b] = self.paper;
        // Colour behind all frames, blue first; then how often it plays: 0 is for ever.
        riff_chunk(&mut body, b"ANIM", &[b, g, r, 255, 0, 0]);
        let mut before: Vec<[u8; 3]> = Vec::new();
        for k in 0..self.sizes.len() {
            let frame = self.frame(k)?;
            let part =
                if k == 0 { Part::whole(width, height) } else { Part::changed(&before, &frame, width).begun_even() };
            let rgb: Vec<u8> = part.cells(width).flat_map(|i| frame[i]).collect();
            let mut still = Vec::new();
            image::codecs::webp::WebPEncoder::new_lossless(&mut still)
                .encode(&rgb, part.width as u32, part.height as u32, image::ExtendedColorType::Rgb8)
                .map_err(|e| refuse(e.to_string()))?;
            let mut chunk = Vec::new();
            chunk.extend(three_bytes(part.x / 2));
            chunk.extend(three_bytes(part.y / 2));
            chunk.extend(three_bytes(part.width - 1));
            chunk.extend(three_bytes(part.height - 1));
            chunk.extend(three_bytes(frame_ms.min(0xff_ffff) as usize));
            // In place of what is there, and left there: blending rounds in some players.
            const NOT_BLENDED: u8 = 0x02;
            chunk.push(NOT_BLENDED);
            let picture = riff_found(&still, b"VP8L").ok_or_else(|| refuse("a frame could not be encoded".into()))?;
            riff_chunk(&mut chunk, b"VP8L", picture);
            riff_chunk(&mut body, b"ANMF", &chunk);
            before = frame;
        }
        let size = u32::try_from(body.len()).map_err(|_| refuse("the frames make more than 4 GB".into()))?;
        let mut out = b"RIFF".to_vec();
        out.extend(size.to_le_bytes());
        out.append(&mut body);
        Ok(out)
    }

    fn apng(&mut self, frame_ms: u32, refuse: &dyn Fn(String) -> Error) -> Result<Vec<u8>> {
        let (width, height) = self.size();
        let count = self.sizes.len();
        let fail = |e: png::EncodingError| refuse(e.to_string());
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Balanced);
        encoder.set_animated(count as u32, 0).map_err(fail)?;
        // A number of 16 bits over 1000 parts of a second.
        encoder.set_frame_delay(frame_ms.min(u32::from(u16::MAX)) as u16, 1000).map_err(fail)?;
        let mut writer = encoder.write_header().map_err(fail)?;
        let mut before: Vec<[u8; 3]> = Vec::new();
        for k in 0..count {
            let frame = self.frame(k)?;
            let part = if k == 0 { Part::whole(width, height) } else { Part::changed(&before, &frame, width) };
            if k > 0 {
                // The new size must fit at the old place.
                writer.set_frame_position(0, 0).map_err(fail)?;
                writer.set_frame_dimension(part.width as u32, part.height as u32).map_err(fail)?;
                writer.set_frame_position(part.x as u32, part.y as u32).map_err(fail)?;
                writer.set_blend_op(png::BlendOp::Over).map_err(fail)?;
            }
            let mut rgba = Vec::with_capacity(4 * part.width * part.height);
            for i in part.cells(width) {
                let [r, g, b] = frame[i];
                let is_new = k == 0 || before[i] != frame[i];
                rgba.extend(if is_new { [r, g, b, 255] } else { [0; 4] });
            }
            writer.write_image_data(&rgba).map_err(fail)?;
            before = frame;
        }
        writer.finish().map_err(fail)?;
        Ok(out)
    }

    fn gif(&mut self, frame_ms: u32, refuse: &dyn Fn(String) -> Error) -> Result<Vec<u8>> {
        let (width, height) = self.size();
        let fail = |e: gif::EncodingError| refuse(e.to_string());
        let mut palette = self.palette()?;
        let mut colours: Vec<u8> = palette.colours.as_flattened().to_vec();
        // The last colour stands for "as before".
        colours.resize(3 * (usize::from(UNCHANGED) + 1), 0);
        let mut out = Vec::new();
        let mut encoder = gif::Encoder::new(&mut out, width as u16, height as u16, &colours).map_err(fail)?;
        encoder.set_repeat(gif::Repeat::Infinite).map_err(fail)?;
        let mut before: Vec<u8> = Vec::new();
        for k in 0..self.sizes.len() {
            let frame: Vec<u8> = self.frame(k)?.iter().map(|c| palette.index(*c)).collect();
            let part = if k == 0 { Part::whole(width, height) } else { Part::changed(&before, &frame, width) };
            let is_new = |i: usize| k == 0 || before[i] != frame[i];
            let buffer: Vec<u8> = part.cells(width).map(|i| if is_new(i) { frame[i] } else { UNCHANGED }).collect();
            encoder
                .write_frame(&gif::Frame {
                    delay: (frame_ms / 10).clamp(2, u32::from(u16::MAX)) as u16,
                    dispose: gif::DisposalMethod::Keep,
                    transparent: (k > 0).then_some(UNCHANGED),
                    left: part.x as u16,
                    top: part.y as u16,
                    width: part.width as u16,
                    height: part.height as u16,
                    buffer: buffer.into(),
                    ..gif::Frame::default()
                })
                .map_err(fail)?;
            before = frame;
        }
        drop(encoder);
        Ok(out)
    }

    /// 255 colours for all frames together, so that the ground does not flicker.
    fn palette(&mut self) -> Result<Palette> {
        let mut counts = vec![Tally::default(); KEYS];
        for k in 0..self.sizes.len() {
            for c in self.frame(k)? {
                counts[key(c)].add(c);
            }
        }
        Ok(Palette { colours: chosen_colours(&counts, usize::from(UNCHANGED)), known: vec![UNCHANGED; KEYS] })
    }
}

/// Longest side of a lossless WebP picture.
const WEBP_MOST: usize = 16_384;

/// The three low bytes of a number, lowest first.
fn three_bytes(n: usize) -> [u8; 3] {
    [n as u8, (n >> 8) as u8, (n >> 16) as u8]
}

/// Appends a chunk of a RIFF file: name, length, content, and a byte where the length is odd.
fn riff_chunk(out: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    out.extend(name);
    out.extend((content.len() as u32).to_le_bytes());
    out.extend(content);
    if content.len() % 2 == 1 {
        out.push(0);
    }
}

/// The content of the first chunk of that name in a WebP file.
fn riff_found<'a>(file: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    let mut rest = file.get(12..)?;
    loop {
        let length = u32::from_le_bytes(rest.get(4..8)?.try_into().ok()?) as usize;
        let content = rest.get(8..8 + length)?;
        if rest.starts_with(name) {
            return Some(content);
        }
        rest = rest.get(8 + length + length % 2..)?;
    }
}

/// Index of a GIF's colour that means "as in the frame before".
const UNCHANGED: u8 = 255;
/// Colours are told apart by six bits of each channel.
const KEYS: usize = 1 << 18;

fn key([r, g, b]: [u8; 3]) -> usize {
    (usize::from(r >> 2) << 12) | (usize::from(g >> 2) << 6) | usize::from(b >> 2)
}

/// Pixels of like colour.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    pixels: u64,
    sum: [u64; 3],
    squares: [u64; 3],
}

impl Tally {
    fn add(&mut self, colour: [u8; 3]) {
        self.pixels += 1;
        for (k, c) in colour.into_iter().enumerate() {
            self.sum[k] += u64::from(c);
            self.squares[k] += u64::from(c) * u64::from(c);
        }
    }

    fn mean(&self, channel: usize) -> f64 {
        self.sum[channel] as f64 / self.pixels.max(1) as f64
    }

    /// Sum of squared differences from the mean.
    fn spread(&self, channel: usize) -> f64 {
        (self.squares[channel] as f64 - self.sum[channel] as f64 * self.mean(channel)).max(0.0)
    }

    fn of<'a>(all: impl IntoIterator<Item = &'a Tally>) -> Tally {
        all.into_iter().fold(Tally::default(), |mut a, t| {
            a.pixels += t.pixels;
            for k in 0..3 {
                a.sum[k] += t.sum[k];
                a.squares[k] += t.squares[k];
            }
            a
        })
    }
}

/// At most `most` colours for pixels so counted: the group that is spread most is cut in two at its mean, along the channel
/// in which it is spread most, until there are enough (after X. Wu, "Efficient statistical computations for optimal color
/// quantization", Graphics Gems II, 1991, with the mean for the best cut). Few colours are kept as they are.
fn chosen_colours(counts: &[Tally], most: usize) -> Vec<[u8; 3]> {
    let all: Vec<Tally> = counts.iter().filter(|t| t.pixels > 0).copied().collect();
    // Pixels count by their root: small areas, such as a polity's, need their colour too.
    let weight = |t: &Tally| (t.pixels as f64).sqrt().max(1.0) / t.pixels.max(1) as f64;
    let widest = |group: &[Tally]| -> (f64, usize) {
        let whole = Tally::of(group);
        let spread = |k: usize| whole.spread(k) * weight(&whole);
        let k = (0..3).max_by(|&a, &b| spread(a).total_cmp(&spread(b))).unwrap_or(0);
        (if group.len() < 2 { 0.0 } else { spread(k) }, k)
    };
    let mut groups: Vec<(f64, usize, Vec<Tally>)> = Vec::new();
    if !all.is_empty() {
        let (spread, channel) = widest(&all);
        groups.push((spread, channel, all));
    }
    while groups.len() < most {
        let Some(n) = (0..groups.len()).max_by(|&a, &b| groups[a].0.total_cmp(&groups[b].0).then(b.cmp(&a))) else {
            break;
        };
        if groups[n].0 <= 0.0 {
            break;
        }
        let (_, channel, group) = groups.swap_remove(n);
        let at = Tally::of(&group).mean(channel);
        let (low, high): (Vec<Tally>, Vec<Tally>) = group.into_iter().partition(|t| t.mean(channel) <= at);
        // A group that rounding keeps together is done with.
        let is_cut = !low.is_empty() && !high.is_empty();
        for half in [low, high].into_iter().filter(|h| !h.is_empty()) {
            let (spread, channel) = widest(&half);
            groups.push((if is_cut { spread } else { 0.0 }, channel, half));
        }
    }
    let colour = |g: &(f64, usize, Vec<Tally>)| {
        let whole = Tally::of(&g.2);
        [0, 1, 2].map(|k| whole.mean(k).round() as u8)
    };
    groups.iter().map(colour).collect()
}

/// Colours of a GIF, and which one stands for what.
struct Palette {
    colours: Vec<[u8; 3]>,
    /// By [`key`]; [`UNCHANGED`] where not asked for yet.
    known: Vec<u8>,
}

impl Palette {
    fn index(&mut self, colour: [u8; 3]) -> u8 {
        let key = key(colour);
        if self.known[key] == UNCHANGED {
            // The middle of the colours that share the key, so that order does not matter.
            let middle = colour.map(|v| i32::from(v & 0xfc) + 2);
            // Green counts most to the eye, blue least.
            let away =
                |c: &[u8; 3]| -> i32 { (0..3).map(|k| [3, 6, 2][k] * (middle[k] - i32::from(c[k])).pow(2)).sum() };
            let nearest = (0..self.colours.len()).min_by_key(|&i| away(&self.colours[i])).unwrap_or(0);
            self.known[key] = nearest as u8;
        }
        self.known[key]
    }
}

/// A rectangle of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

impl Part {
    fn whole(width: usize, height: usize) -> Part {
        Part { x: 0, y: 0, width, height }
    }

    /// The least rectangle around all that differs; a pixel where nothing does.
    fn changed<T: PartialEq>(before: &[T], after: &[T], width: usize) -> Part {
        let (mut west, mut east, mut north, mut south) = (usize::MAX, 0, usize::MAX, 0);
        for (y, (a, b)) in before.chunks_exact(width).zip(after.chunks_exact(width)).enumerate() {
            let Some(first) = (0..width).find(|&x| a[x] != b[x]) else { continue };
            let last = (0..width).rev().find(|&x| a[x] != b[x]).unwrap_or(first);
            (west, east) = (west.min(first), east.max(last));
            (north, south) = (north.min(y), y);
        }
        if west == usize::MAX {
            return Part { x: 0, y: 0, width: 1, height: 1 };
        }
        Part { x: west, y: north, width: east - west + 1, height: south - north + 1 }
    }

    /// The same, begun at even pixels: the container of WebP knows no others.
    fn begun_even(self) -> Part {
        let (x, y) = (self.x % 2, self.y % 2);
        Part { x: self.x - x, y: self.y - y, width: self.width + x, height: self.height + y }
    }

    /// The places of its pixels in a frame of `width`.
    fn cells(self, width: usize) -> impl Iterator<Item = usize> {
        (self.y..self.y + self.height).flat_map(move |y| (self.x..self.x + self.width).map(move |x| y * width + x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: [u8; 3] = [250, 250, 250];

    /// Five frames of few colours, the second smaller, the third equal to the first.
    fn frames() -> (Frames, Vec<Vec<[u8; 3]>>) {
        let (w, h) = (8, 6);
        let first: Vec<[u8; 3]> = (0..w * h).map(|k| [20 + 30 * (k % 8) as u8, 60, 200]).collect();
        let mut smaller = vec![[20, 60, 200]; 5 * 4];
        smaller[7] = [250, 10, 10];
        let mut f = Frames::new(&std::env::temp_dir(), PAPER).unwrap();
        f.push(&first, w).unwrap();
        f.push(&smaller, 5).unwrap();
        f.push(&first, w).unwrap();
        // A corner alone, then another.
        let mut corner = first.clone();
        corner[w * h - 1] = [0; 3];
        f.push(&corner, w).unwrap();
        corner[0] = [0; 3];
        f.push(&corner, w).unwrap();
        let mut filled = vec![PAPER; w * h];
        for y in 0..4 {
            filled[y * w..y * w + 5].copy_from_slice(&smaller[y * 5..y * 5 + 5]);
        }
        let mut end = first.clone();
        end[w * h - 1] = [0; 3];
        (f, vec![first.clone(), filled, first, end, corner])
    }

    /// What a viewer shows after each frame of an APNG, by the rules of its chunks.
    fn shown_apng(bytes: &[u8]) -> Vec<Vec<[u8; 3]>> {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let (w, h) = (reader.info().width as usize, reader.info().height as usize);
        let count = reader.info().animation_control.unwrap().num_frames;
        let mut canvas = vec![[0u8; 3]; w * h];
        let mut buffer = vec![0; w * h * 4];
        (0..count)
            .map(|_| {
                reader.next_frame(&mut buffer).unwrap();
                let c = *reader.info().frame_control().unwrap();
                for y in 0..c.height as usize {
                    for x in 0..c.width as usize {
                        let p = &buffer[4 * (y * c.width as usize + x)..][..4];
                        if p[3] == 255 {
                            canvas[(y + c.y_offset as usize) * w + x + c.x_offset as usize] = [p[0], p[1], p[2]];
                        }
                    }
                }
                canvas.clone()
            })
            .collect()
    }

    #[test]
    fn an_apng_shows_every_frame_exactly() {
        let (mut f, expected) = frames();
        let bytes = f.encode(AnimationKind::Apng, 700).unwrap();
        assert_eq!(shown_apng(&bytes), expected);
        assert_eq!(bytes, f.encode(AnimationKind::Apng, 700).unwrap());
    }

    #[test]
    fn a_webp_shows_every_frame_exactly() {
        use image::AnimationDecoder;
        let (mut f, expected) = frames();
        let bytes = f.encode(AnimationKind::WebP, 700).unwrap();
        assert_eq!(bytes, f.encode(AnimationKind::WebP, 700).unwrap());
        assert_eq!(u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize + 8, bytes.len());
        let decoder = image::codecs::webp::WebPDecoder::new(std::io::Cursor::new(&bytes)).unwrap();
        assert!(decoder.has_animation());
        let shown = decoder.into_frames().collect_frames().unwrap();
        assert_eq!(shown.len(), expected.len());
        for (frame, expected) in shown.iter().zip(&expected) {
            assert_eq!(frame.delay().numer_denom_ms(), (700, 1));
            let rgb: Vec<[u8; 3]> = frame.buffer().pixels().map(|p| [p[0], p[1], p[2]]).collect();
            assert_eq!(&rgb, expected);
        }
    }

    #[test]
    fn a_gif_shows_every_frame_in_its_colours() {
        let (mut f, expected) = frames();
        let bytes = f.encode(AnimationKind::Gif, 700).unwrap();
        assert_eq!(bytes, f.encode(AnimationKind::Gif, 700).unwrap());
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::Indexed);
        let mut decoder = options.read_info(&bytes[..]).unwrap();
        let palette = decoder.global_palette().unwrap().to_vec();
        let mut canvas = vec![[0u8; 3]; 48];
        let mut n = 0;
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            assert_eq!(frame.delay, 70);
            for y in 0..usize::from(frame.height) {
                for x in 0..usize::from(frame.width) {
                    let c = frame.buffer[y * usize::from(frame.width) + x];
                    if Some(c) != frame.transparent {
                        let at = (y + usize::from(frame.top)) * 8 + x + usize::from(frame.left);
                        canvas[at] = palette[3 * usize::from(c)..][..3].try_into().unwrap();
                    }
                }
            }
            for (a, b) in canvas.iter().flatten().zip(expected[n].iter().flatten()) {
                // So few colours are kept as they are.
                assert!(a == b, "frame {n}: {canvas:?}");
            }
            n += 1;
        }
        assert_eq!(n, 5);
    }

    #[test]
    fn a_frame_without_a_change_is_a_pixel() {
        assert_eq!(Part::changed(&[1, 2, 3, 4], &[1, 2, 3, 4], 2), Part { x: 0, y: 0, width: 1, height: 1 });
        assert_eq!(Part::changed(&[1, 2, 3, 4], &[1, 0, 3, 0], 2), Part { x: 1, y: 0, width: 1, height: 2 });
        let nothing = Frames::new(&std::env::temp_dir(), PAPER).unwrap().encode(AnimationKind::Gif, 100);
        assert!(nothing.unwrap_err().to_string().contains("no frames"));
    }
}
