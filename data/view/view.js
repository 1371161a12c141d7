// The page of `histmap view`. It reads `HISTMAP` of data.js, which the program writes, and draws it with three.js. No network:
// all that it needs is in its folder.
"use strict";

(() => {
  const data = window.HISTMAP;
  const element = (id) => document.getElementById(id);
  const canvas = element("scene");

  // ---- packed numbers ------------------------------------------------------------------------------------------------

  /** Bytes of a base64 text. */
  function bytes(text) {
    const raw = atob(text);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  }

  /** Bytes of a zlib stream in base64. */
  async function unpacked(text) {
    const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** Whole numbers: differences from the former, their sign in the lowest bit, seven bits a byte. */
  function differences(packed, count) {
    const out = new Int32Array(count);
    let at = 0;
    let value = 0;
    for (let k = 0; k < count; k++) {
      let coded = 0;
      let shift = 0;
      let byte;
      do {
        byte = packed[at++];
        coded |= (byte & 127) << shift;
        shift += 7;
      } while (byte & 128);
      value = (value + ((coded >>> 1) ^ -(coded & 1))) | 0;
      out[k] = value;
    }
    return out;
  }

  // ---- state, kept in the address ------------------------------------------------------------------------------------

  const state = { year: null, exaggeration: 1, azimuth: 315, altitude: 40, layers: null, mode: "orbit" };

  function readHash() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const numbers = (key, n) => {
      const list = (parts.get(key) || "none").split(",").map(Number);
      return list.length === n && list.every(Number.isFinite) ? list : null;
    };
    const one = (key) => numbers(key, 1)?.[0];
    return {
      camera: numbers("c", 3),
      target: numbers("t", 3),
      exaggeration: one("e"),
      year: one("y"),
      azimuth: one("a"),
      altitude: one("h"),
      layers: parts.has("l") ? parts.get("l").split(",") : null,
    };
  }

  let hashTimer = 0;
  function writeHash() {
    clearTimeout(hashTimer);
    hashTimer = setTimeout(() => history.replaceState(null, "", "#" + hash()), 150);
  }

  function hash() {
    const list = (v) => [v.x, v.y, v.z].map((c) => c.toFixed(3)).join(",");
    const on = ["relief", "polities", "contours"].filter((l) => element("layer-" + l).checked);
    const out = [`c=${list(camera.position)}`, `t=${list(controls.target)}`, `e=${state.exaggeration}`];
    if (state.year !== null) out.push(`y=${state.year}`);
    out.push(`a=${state.azimuth}`, `h=${state.altitude}`, `l=${on.join(",")}`);
    return out.join("&");
  }

  // ---- scene ---------------------------------------------------------------------------------------------------------

  let renderer, scene, camera, controls, terrain, model;
  let isDue = false;

  /** Draws once, soon. */
  function draw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      frame();
    });
  }

  function frame() {
    if (state.mode === "fly" && flying.move()) draw();
    renderer.render(scene, camera);
    turnCompass();
  }

  function start() {
    renderer = new THREE.WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
    renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    scene = new THREE.Scene();
    scene.background = new THREE.Color(0xdfe6ea);
    camera = new THREE.PerspectiveCamera(40, 1, 0.01, 1000);
    controls = new THREE.OrbitControls(camera, canvas);
    controls.maxPolarAngle = Math.PI / 2 - 0.02;
    controls.zoomToCursor = true;
    controls.addEventListener("change", () => {
      draw();
      writeHash();
    });
    window.addEventListener("resize", fit);
    fit();
  }

  /** Fits the picture to the window, its middle to what the panel leaves free. */
  function fit() {
    const [w, h] = [window.innerWidth, window.innerHeight];
    renderer.setSize(w, h, false);
    camera.aspect = w / h;
    const beside = w > 640 ? Math.min(306, w / 3) : 0;
    camera.setViewOffset(w, h, -beside / 2, 0, w, h);
    camera.updateProjectionMatrix();
    draw();
  }

  function turnCompass() {
    const v = new THREE.Vector3();
    camera.getWorldDirection(v);
    element("compass").style.transform = `rotate(${Math.atan2(-v.x, -v.z)}rad)`;
  }

  /** The camera over a box of the given half sizes, from the south. */
  function home(halfX, halfZ, high) {
    const free = 1 - (window.innerWidth > 640 ? Math.min(306 / window.innerWidth, 1 / 3) : 0);
    const tall = Math.max(halfZ * 0.9, halfX / (camera.aspect * free));
    const distance = (tall / Math.tan((camera.fov * Math.PI) / 360)) * 1.25;
    controls.target.set(0, high / 3, halfZ * 0.12);
    camera.position.set(0, distance * 0.72, distance * 0.8 + halfZ * 0.12);
    camera.near = distance / 1000;
    camera.far = distance * 12;
    camera.updateProjectionMatrix();
    controls.maxDistance = distance * 4;
    controls.minDistance = distance / 200;
    controls.update();
  }

  // ---- terrain -------------------------------------------------------------------------------------------------------

  const vertexShader = `
    uniform float uHigh;
    in float aHeight;
    out vec2 vGrid;
    uniform vec2 uCell;
    uniform vec2 uMiddle;
    void main() {
      vGrid = position.xy;
      vec2 ground = (position.xy - uMiddle) * uCell;
      gl_Position = projectionMatrix * modelViewMatrix * vec4(ground.x, (aHeight - position.z) * uHigh, ground.y, 1.0);
    }`;

  const fragmentShader = `
    precision highp float;
    precision highp usampler2D;
    uniform sampler2D uHeights;
    uniform usampler2D uCodes;
    uniform sampler2D uColours;
    uniform usampler2D uWater;
    uniform sampler2D uTints;
    uniform vec2 uShrink;
    uniform vec2 uCodeShrink;
    uniform vec2 uCell;
    uniform float uHigh;
    uniform vec3 uLight;
    uniform vec3 uRange;
    uniform float uInterval;
    uniform bool uHasCodes;
    uniform bool uHasWater;
    uniform bool uRelief;
    uniform bool uPolities;
    uniform bool uContours;
    in vec2 vGrid;
    out vec4 colour;

    ivec2 held(ivec2 at, sampler2D t) { return clamp(at, ivec2(0), textureSize(t, 0) - 1); }
    float cell(ivec2 at) { return texelFetch(uHeights, held(at, uHeights), 0).r; }
    float height(vec2 g) {
      vec2 p = (g + 0.5) * uShrink - 0.5;
      ivec2 i = ivec2(floor(p));
      vec2 f = p - vec2(i);
      return mix(mix(cell(i), cell(i + ivec2(1, 0)), f.x), mix(cell(i + ivec2(0, 1)), cell(i + ivec2(1, 1)), f.x), f.y);
    }
    ivec2 place(vec2 g) { return clamp(ivec2(floor((g + 0.5) * uCodeShrink)), ivec2(0), textureSize(uCodes, 0) - 1); }
    uint code(vec2 g) { return texelFetch(uCodes, place(g), 0).r; }
    uint wet(vec2 g) {
      ivec2 i = ivec2(floor((g + 0.5) * uCodeShrink));
      return uHasWater ? texelFetch(uWater, clamp(i, ivec2(0), textureSize(uWater, 0) - 1), 0).r : 0u;
    }
    /** Whether another polity lies there; shores and rivers are no borders. */
    bool other(vec2 g, uint own) { return wet(g) == 0u && code(g) != own; }

    void main() {
      float h = height(vGrid);
      vec2 d = 1.0 / uShrink;
      float dx = (height(vGrid + vec2(d.x, 0.0)) - height(vGrid - vec2(d.x, 0.0))) * uHigh / (2.0 * d.x * uCell.x);
      float dz = (height(vGrid + vec2(0.0, d.y)) - height(vGrid - vec2(0.0, d.y))) * uHigh / (2.0 * d.y * uCell.y);
      vec3 normal = normalize(vec3(-dx, 1.0, -dz));
      uint water = wet(vGrid);
      float shade = 0.42 + 0.68 * max(dot(normal, uLight), 0.0);
      vec3 ground = vec3(0.97, 0.95, 0.90);
      if (uRelief) {
        if (water == 3u) {
          ground = vec3(0.42, 0.62, 0.78);
        } else if (water > 0u) {
          float depth = clamp((uRange.y > 0.0 ? -h : 0.0) / 2200.0, 0.0, 1.0);
          ground = mix(vec3(0.80, 0.90, 0.95), vec3(0.50, 0.68, 0.80), sqrt(depth));
          shade = mix(1.0, shade, 0.45);
        } else {
          ground = texture(uTints, vec2((h - uRange.x) / max(uRange.y - uRange.x, 1e-6), 0.5)).rgb;
        }
      } else if (water > 0u) {
        ground = vec3(0.82, 0.90, 0.94);
        shade = mix(1.0, shade, 0.3);
      }
      vec2 w = max(fwidth(vGrid), vec2(1e-6));
      if (uHasCodes && uPolities && water == 0u) {
        uint own = code(vGrid);
        vec4 polity = texelFetch(uColours, ivec2(int(own & 255u), int(own >> 8)), 0);
        ground = mix(ground, polity.rgb, uRelief ? 0.5 * polity.a : 0.8 * polity.a);
        vec2 r = w * 0.9;
        bool edge = other(vGrid + vec2(r.x, 0.0), own) || other(vGrid - vec2(r.x, 0.0), own)
          || other(vGrid + vec2(0.0, r.y), own) || other(vGrid - vec2(0.0, r.y), own);
        if (edge) ground = mix(ground, vec3(0.36, 0.10, 0.08), 0.75);
      }
      if (uContours && water == 0u) {
        float level = h / uInterval;
        float wide = max(fwidth(level), 1e-6);
        float line = 1.0 - smoothstep(0.5, 1.3, abs(fract(level - 0.5) - 0.5) / wide);
        float index = 1.0 - smoothstep(0.8, 2.0, abs(fract(level / 5.0 - 0.5) - 0.5) * 5.0 / wide);
        ground = mix(ground, vec3(0.45, 0.28, 0.14), max(0.55 * line, 0.8 * index) * (1.0 - smoothstep(0.2, 0.55, wide)));
      }
      colour = vec4(ground * shade, 1.0);
    }`;

  class Terrain {
    constructor(t) {
      Object.assign(this, t);
      // Kilometres, so that numbers stay small.
      this.cellX = t.cell_m[0] / 1000;
      this.cellZ = t.cell_m[1] / 1000;
      this.middleX = (t.cols - 1) / 2;
      this.middleZ = (t.rows - 1) / 2;
    }

    async read() {
      const whole = differences(await unpacked(this.heights), this.cols * this.rows);
      const out = new Float32Array(whole.length);
      for (let k = 0; k < out.length; k++) out[k] = whole[k] === -2147483648 ? NaN : whole[k] * this.quantum;
      this.z = out;
      if (this.water) this.waterCodes = await unpacked(this.water);
      for (const era of this.eras) {
        const packed = await unpacked(era.codes);
        era.cells = era.wide ? new Uint16Array(packed.buffer) : packed;
      }
    }

    height(col, row) {
      return this.z[row * this.cols + col];
    }

    /** The height of the ground as it is drawn between cells; NaN outside. */
    between(x, y) {
      if (!(x >= 0 && y >= 0 && x <= this.cols - 1 && y <= this.rows - 1)) return NaN;
      const c = Math.min(Math.floor(x), this.cols - 2);
      const r = Math.min(Math.floor(y), this.rows - 2);
      const [u, v] = [x - c, y - r];
      const top = this.height(c, r) * (1 - u) + this.height(c + 1, r) * u;
      const low = this.height(c, r + 1) * (1 - u) + this.height(c + 1, r + 1) * u;
      return top * (1 - v) + low * v;
    }

    /** A texture of at most 2048 on a side; heights are means, codes are picked. */
    shrunk(values, format, type, kind, isWater = false) {
      const step = Math.ceil(Math.max(this.cols, this.rows) / 2048);
      const [w, h] = [Math.ceil(this.cols / step), Math.ceil(this.rows / step)];
      const out = new kind(w * h);
      for (let r = 0; r < h; r++) {
        for (let c = 0; c < w; c++) {
          if (kind === Float32Array) {
            let [sum, n] = [0, 0];
            for (let y = r * step; y < Math.min((r + 1) * step, this.rows); y++) {
              for (let x = c * step; x < Math.min((c + 1) * step, this.cols); x++) {
                const v = values[y * this.cols + x];
                if (v === v) {
                  sum += v;
                  n++;
                }
              }
            }
            out[r * w + c] = n ? sum / n : NaN;
          } else {
            const x = Math.min(c * step + (step >> 1), this.cols - 1);
            const y = Math.min(r * step + (step >> 1), this.rows - 1);
            let code = values[y * this.cols + x];
            // Rivers are one cell wide: any cell of one counts.
            for (let k = 0; isWater && !code && k < step * step; k++) {
              const [c2, r2] = [c * step + (k % step), r * step + Math.floor(k / step)];
              if (c2 < this.cols && r2 < this.rows && values[r2 * this.cols + c2] === 3) code = 3;
            }
            out[r * w + c] = code;
          }
        }
      }
      if (kind === Float32Array) this.fillAround(out, w, h);
      const texture = new THREE.DataTexture(out, w, h, format, type);
      if (kind === Uint16Array) texture.internalFormat = "R16UI";
      if (kind === Uint8Array) texture.internalFormat = "R8UI";
      texture.magFilter = texture.minFilter = THREE.NearestFilter;
      texture.unpackAlignment = 1;
      texture.needsUpdate = true;
      texture.step = step;
      return texture;
    }

    /** Cells without a height beside one get the mean of their neighbours, so that slopes at a hole are true; others the lowest. */
    fillAround(out, w, h) {
      const holes = [];
      for (let k = 0; k < out.length; k++) if (out[k] !== out[k]) holes.push(k);
      const filled = holes.map((k) => {
        const [c, r] = [k % w, Math.floor(k / w)];
        let [sum, n] = [0, 0];
        for (let y = Math.max(r - 1, 0); y <= Math.min(r + 1, h - 1); y++) {
          for (let x = Math.max(c - 1, 0); x <= Math.min(c + 1, w - 1); x++) {
            const v = out[y * w + x];
            if (v === v) [sum, n] = [sum + v, n + 1];
          }
        }
        return n ? sum / n : this.low;
      });
      holes.forEach((k, i) => (out[k] = filled[i]));
    }

    async build() {
      await this.read();
      const packed = differences(await unpacked(this.vertices), 2 * this.vertex_count);
      const index = new Uint32Array(differences(await unpacked(this.triangles), 3 * this.triangle_count));
      const n = this.vertex_count;
      const border = this.border(index);
      const position = new Float32Array(3 * (n + border.length));
      const high = new Float32Array(n + border.length);
      for (let k = 0; k < n; k++) {
        // All columns, then all rows.
        const [c, r] = [packed[k], packed[n + k]];
        position[3 * k] = c;
        position[3 * k + 1] = r;
        high[k] = this.height(c, r);
        if (!(high[k] === high[k])) high[k] = this.low;
      }
      // A skirt, so that no light shines below the edge.
      const depth = Math.max((this.high - this.low) * 0.06, this.quantum);
      const wall = new Uint32Array(6 * border.length);
      const copy = new Map(border.map(([a], k) => [a, n + k]));
      border.forEach(([a, b], k) => {
        position.set([position[3 * a], position[3 * a + 1], depth], 3 * (n + k));
        high[n + k] = high[a];
        const [lowA, lowB] = [n + k, copy.get(b) ?? n + k];
        wall.set([b, a, lowA, b, lowA, lowB], 6 * k);
      });
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(position, 3));
      geometry.setAttribute("aHeight", new THREE.BufferAttribute(high, 1));
      const all = new Uint32Array(index.length + wall.length);
      all.set(index);
      all.set(wall, index.length);
      geometry.setIndex(new THREE.BufferAttribute(all, 1));
      const heights = this.shrunk(this.z, THREE.RedFormat, THREE.FloatType, Float32Array);
      const zero = new THREE.DataTexture(new Uint8Array(1), 1, 1, THREE.RedIntegerFormat, THREE.UnsignedByteType);
      zero.internalFormat = "R8UI";
      zero.needsUpdate = true;
      const water = this.waterCodes ? this.shrunk(this.waterCodes, THREE.RedIntegerFormat, THREE.UnsignedByteType, Uint8Array, true) : zero;
      const tints = new THREE.DataTexture(bytes(this.tints), 256, 1, THREE.RGBAFormat, THREE.UnsignedByteType);
      tints.magFilter = tints.minFilter = THREE.LinearFilter;
      tints.needsUpdate = true;
      this.colours = new THREE.DataTexture(new Uint8Array(4 * 65536), 256, 256, THREE.RGBAFormat, THREE.UnsignedByteType);
      this.colours.magFilter = this.colours.minFilter = THREE.NearestFilter;
      this.uniforms = {
        uHeights: { value: heights },
        uCodes: { value: zero },
        uColours: { value: this.colours },
        uWater: { value: water },
        uTints: { value: tints },
        uShrink: { value: new THREE.Vector2(1 / heights.step, 1 / heights.step) },
        uCodeShrink: { value: new THREE.Vector2(1 / heights.step, 1 / heights.step) },
        uCell: { value: new THREE.Vector2(this.cellX, this.cellZ) },
        uMiddle: { value: new THREE.Vector2(this.middleX, this.middleZ) },
        uHigh: { value: 0.001 },
        uLight: { value: new THREE.Vector3(0, 1, 0) },
        uRange: { value: new THREE.Vector3(this.low, this.high, 0) },
        uInterval: { value: this.interval },
        uHasCodes: { value: this.eras.length > 0 },
        uHasWater: { value: !!this.waterCodes },
        uRelief: { value: true },
        uPolities: { value: true },
        uContours: { value: false },
      };
      const material = new THREE.ShaderMaterial({
        glslVersion: THREE.GLSL3,
        uniforms: this.uniforms,
        vertexShader,
        fragmentShader,
        side: THREE.DoubleSide,
      });
      this.mesh = new THREE.Mesh(geometry, material);
      // Heights are added by the shader: three.js cannot tell whether it is in view.
      this.mesh.frustumCulled = false;
      scene.add(this.mesh);
    }

    /** Edges of one triangle only, along it. */
    border(index) {
      const open = new Map();
      const key = (a, b) => a * 4294967296 + b;
      for (let k = 0; k < index.length; k += 3) {
        for (let e = 0; e < 3; e++) {
          const [a, b] = [index[k + e], index[k + ((e + 1) % 3)]];
          if (!open.delete(key(b, a))) open.set(key(a, b), [a, b]);
        }
      }
      return [...open.values()];
    }

    /** The era of a year: the last that has begun. */
    eraOf(year) {
      let found = this.eras[0];
      for (const era of this.eras) if (era.first <= year) found = era;
      return found;
    }

    show(era) {
      if (this.era === era) return;
      this.era = era;
      if (!era.texture) {
        const cells = era.wide ? era.cells : Uint16Array.from(era.cells);
        era.texture = this.shrunk(cells, THREE.RedIntegerFormat, THREE.UnsignedShortType, Uint16Array);
      }
      this.uniforms.uCodes.value = era.texture;
      const table = this.colours.image.data;
      table.fill(0);
      era.names = new Map();
      for (const p of era.polities) {
        table.set([...p.colour, 255], 4 * p.code);
        era.names.set(p.code, p.name);
      }
      this.colours.needsUpdate = true;
    }

    /** Heights of the world: kilometres up for a metre. */
    get up() {
      return this.uniforms.uHigh.value;
    }

    toWorld(col, row, metres) {
      return new THREE.Vector3((col - this.middleX) * this.cellX, metres * this.up, (row - this.middleZ) * this.cellZ);
    }

    /** The cell that a ray meets first, or null. */
    hit(ray) {
      const at = (t) => {
        const p = ray.origin.clone().addScaledVector(ray.direction, t);
        return [p.x / this.cellX + this.middleX, p.z / this.cellZ + this.middleZ, p.y];
      };
      // Between the floor and the ceiling only.
      const [floor, roof] = [this.low * this.up - 1e-6, this.high * this.up + 1e-6];
      let [from, to] = [0, 1e6];
      if (Math.abs(ray.direction.y) > 1e-9) {
        const [a, b] = [(roof - ray.origin.y) / ray.direction.y, (floor - ray.origin.y) / ray.direction.y].sort((x, y) => x - y);
        [from, to] = [Math.max(from, a), Math.min(to, b)];
      }
      // And between the edges.
      for (const [o, d, half] of [
        [ray.origin.x, ray.direction.x, this.middleX * this.cellX],
        [ray.origin.z, ray.direction.z, this.middleZ * this.cellZ],
      ]) {
        if (Math.abs(d) < 1e-12) {
          if (Math.abs(o) > half) return null;
          continue;
        }
        const [a, b] = [(-half - o) / d, (half - o) / d].sort((x, y) => x - y);
        [from, to] = [Math.max(from, a), Math.min(to, b)];
      }
      if (from > to) return null;
      const step = Math.min(this.cellX, this.cellZ) * 0.5;
      const n = Math.min(Math.ceil((to - from) / step) + 1, 40000);
      let before = from;
      for (let k = 0; k <= n; k++) {
        const t = from + ((to - from) * k) / n;
        const [x, y, z] = at(t);
        const ground = this.between(x, y) * this.up;
        if (z <= ground) {
          let [a, b] = [before, t];
          for (let i = 0; i < 30; i++) {
            const m = (a + b) / 2;
            const [mx, my, mz] = at(m);
            if (mz <= this.between(mx, my) * this.up) b = m;
            else a = m;
          }
          const [hx, hy] = at(b);
          const col = Math.min(Math.max(Math.round(hx), 0), this.cols - 1);
          const row = Math.min(Math.max(Math.round(hy), 0), this.rows - 1);
          return { col, row, x: hx, y: hy };
        }
        before = t;
      }
      return null;
    }

    describe({ col, row, x, y }) {
      const h = this.height(col, row);
      const lines = [];
      if (this.era) {
        const code = this.era.cells[row * this.cols + col];
        lines.push(code ? this.era.names.get(code) || `class ${code}` : this.waterCodes?.[row * this.cols + col] ? "water" : "unclaimed");
      }
      const digits = Math.max(0, Math.round(-Math.log10(this.quantum)));
      lines.push(h === h ? `${h.toFixed(digits)} m` : "no height");
      if (this.transform) {
        const [left, top, width, height] = this.transform;
        const [e, n] = [left + (x + 0.5) * width, top - (y + 0.5) * height];
        lines.push(this.is_geographic ? `${e.toFixed(4)}° E, ${n.toFixed(4)}° N` : `${e.toFixed(0)}, ${n.toFixed(0)}`);
      }
      lines.push(`column ${col * this.shrink}, row ${row * this.shrink}`);
      return lines.join("\n");
    }
  }

  // ---- flying --------------------------------------------------------------------------------------------------------

  const flying = {
    keys: new Set(),
    last: 0,
    /** Moves by the keys that are down; whether any is. */
    move() {
      const now = performance.now();
      const seconds = Math.min((now - this.last) / 1000, 0.1);
      this.last = now;
      if (!this.keys.size) return false;
      const ahead = new THREE.Vector3();
      camera.getWorldDirection(ahead);
      const right = new THREE.Vector3().crossVectors(ahead, camera.up).normalize();
      const has = (...names) => names.some((k) => this.keys.has(k));
      const step = new THREE.Vector3();
      if (has("KeyW", "ArrowUp")) step.add(ahead);
      if (has("KeyS", "ArrowDown")) step.sub(ahead);
      if (has("KeyD", "ArrowRight")) step.add(right);
      if (has("KeyA", "ArrowLeft")) step.sub(right);
      if (has("KeyE", "PageUp")) step.y += 1;
      if (has("KeyQ", "PageDown")) step.y -= 1;
      const pace = (has("ShiftLeft", "ShiftRight") ? 3 : 1) * Math.max(camera.position.y, controls.minDistance) * 0.9 * seconds;
      step.normalize().multiplyScalar(pace);
      camera.position.add(step);
      if (terrain) {
        const g = terrain.between(camera.position.x / terrain.cellX + terrain.middleX, camera.position.z / terrain.cellZ + terrain.middleZ);
        if (g === g) camera.position.y = Math.max(camera.position.y, g * terrain.up + controls.minDistance * 0.3);
      }
      this.aim(ahead);
      return true;
    },
    aim(ahead) {
      controls.target.copy(camera.position).addScaledVector(ahead, controls.minDistance * 20);
      camera.lookAt(controls.target);
      writeHash();
    },
    turn(dx, dy) {
      const ahead = new THREE.Vector3();
      camera.getWorldDirection(ahead);
      const yaw = Math.atan2(ahead.x, ahead.z) + dx * 0.003;
      const pitch = Math.min(Math.max(Math.asin(ahead.y) + dy * 0.003, -1.5), 1.5);
      this.aim(new THREE.Vector3(Math.sin(yaw) * Math.cos(pitch), Math.sin(pitch), Math.cos(yaw) * Math.cos(pitch)));
      draw();
    },
  };

  function setMode(mode) {
    state.mode = mode;
    controls.enabled = mode === "orbit";
    element("orbit").setAttribute("aria-pressed", mode === "orbit");
    element("fly").setAttribute("aria-pressed", mode === "fly");
    element("keys").textContent =
      mode === "orbit"
        ? "Drag to turn, right button to move, wheel to zoom."
        : "W A S D or arrows to fly, E and Q up and down, Shift faster, drag to look.";
    if (mode === "fly") canvas.focus();
    draw();
  }

  // ---- controls ------------------------------------------------------------------------------------------------------

  /** Slider position 0..1 to a factor, doubling evenly. */
  const most = 40;
  const factorOf = (v) => (v <= 0 ? 0 : Number((most ** v).toPrecision(3)));
  const sliderOf = (f) => (f <= 1 ? (f > 0 ? 0.001 : 0) : Math.log(f) / Math.log(most));

  function yearName(y) {
    return y <= 0 ? `${1 - y} BCE` : `${y}`;
  }

  function apply() {
    element("exaggeration-label").textContent = state.exaggeration.toLocaleString("en", { maximumFractionDigits: 1 });
    element("azimuth-label").textContent = `${state.azimuth}°`;
    element("altitude-label").textContent = `${state.altitude}°`;
    if (terrain) {
      const [a, h] = [(state.azimuth * Math.PI) / 180, (state.altitude * Math.PI) / 180];
      const u = terrain.uniforms;
      u.uHigh.value = 0.001 * state.exaggeration;
      u.uLight.value.set(Math.sin(a) * Math.cos(h), Math.sin(h), -Math.cos(a) * Math.cos(h));
      u.uRelief.value = element("layer-relief").checked;
      u.uPolities.value = element("layer-polities").checked;
      u.uContours.value = element("layer-contours").checked;
      if (state.year !== null) {
        terrain.show(terrain.eraOf(state.year));
        element("year-label").textContent = yearName(state.year) + (terrain.eras.length > 1 ? ` (map of ${terrain.era.label})` : "");
        legend();
      }
    }
    if (model) model.group.scale.y = Math.max(state.exaggeration, 0.001);
    draw();
    writeHash();
  }

  let legendEra = null;
  function legend() {
    if (legendEra === terrain.era) return;
    legendEra = terrain.era;
    const list = element("legend");
    list.replaceChildren(
      ...terrain.era.polities.map((p) => {
        const [item, swatch, text] = ["li", "i", "span"].map((n) => document.createElement(n));
        swatch.style.background = `rgb(${p.colour.join(",")})`;
        text.textContent = p.name;
        item.append(swatch, text);
        if (p.years) {
          const years = document.createElement("small");
          years.textContent = " " + p.years;
          text.append(years);
        }
        return item;
      }),
    );
  }

  function listen() {
    const slider = (id, use) =>
      element(id).addEventListener("input", (e) => {
        use(Number(e.target.value));
        apply();
      });
    slider("year", (v) => (state.year = v));
    slider("exaggeration", (v) => (state.exaggeration = factorOf(v)));
    slider("azimuth", (v) => (state.azimuth = v));
    slider("altitude", (v) => (state.altitude = v));
    for (const l of ["relief", "polities", "contours"]) element("layer-" + l).addEventListener("change", apply);
    element("orbit").addEventListener("click", () => setMode("orbit"));
    element("fly").addEventListener("click", () => setMode("fly"));
    element("home").addEventListener("click", () => {
      setMode("orbit");
      goHome();
      draw();
    });
    element("link").addEventListener("click", async () => {
      history.replaceState(null, "", "#" + hash());
      try {
        await navigator.clipboard.writeText(location.href);
        element("link").textContent = "Copied";
      } catch {
        element("link").textContent = "See the address bar";
      }
      setTimeout(() => (element("link").textContent = "Copy link"), 1500);
    });
    window.addEventListener("hashchange", () => restore());
    canvas.addEventListener("pointermove", (e) => {
      if (state.mode === "fly" && e.buttons & 1) flying.turn(-e.movementX, -e.movementY);
      hover(e.clientX, e.clientY);
    });
    canvas.addEventListener("pointerleave", () => (element("tip").hidden = true));
    canvas.addEventListener("keydown", (e) => {
      if (state.mode !== "fly") return;
      // Each press moves a little at once; holding it goes on.
      if (!e.repeat) flying.last = performance.now() - 33;
      flying.keys.add(e.code);
      e.preventDefault();
      draw();
    });
    window.addEventListener("keyup", (e) => flying.keys.delete(e.code));
    window.addEventListener("blur", () => flying.keys.clear());
  }

  function hover(x, y) {
    const rect = canvas.getBoundingClientRect();
    const at = new THREE.Vector2(((x - rect.left) / rect.width) * 2 - 1, 1 - ((y - rect.top) / rect.height) * 2);
    const caster = new THREE.Raycaster();
    camera.updateMatrixWorld();
    caster.setFromCamera(at, camera);
    let text = null;
    if (terrain) {
      const cell = terrain.hit(caster.ray);
      if (cell) text = terrain.describe(cell);
    } else if (model) {
      const found = caster.intersectObject(model.group, true)[0];
      if (found) text = model.describe(found);
    }
    const tip = element("tip");
    tip.hidden = text === null;
    if (text === null) return;
    tip.textContent = text;
    tip.style.left = `${Math.min(x + 14, rect.width - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(y + 14, rect.height - tip.offsetHeight - 8)}px`;
  }

  function goHome() {
    if (terrain) home(terrain.middleX * terrain.cellX, terrain.middleZ * terrain.cellZ, terrain.high * terrain.up);
    if (model) home(model.half.x, model.half.z, model.half.y);
  }

  /** What the address says. */
  function restore() {
    const h = readHash();
    if (h.exaggeration !== undefined && h.exaggeration >= 0) state.exaggeration = Math.min(h.exaggeration, most);
    if (h.azimuth !== undefined) state.azimuth = ((h.azimuth % 360) + 360) % 360;
    if (h.altitude !== undefined) state.altitude = Math.min(Math.max(h.altitude, 5), 90);
    if (h.year !== undefined && state.year !== null) {
      state.year = Math.min(Math.max(Math.round(h.year), Number(element("year").min)), Number(element("year").max));
    }
    if (h.layers) for (const l of ["relief", "polities", "contours"]) element("layer-" + l).checked = h.layers.includes(l);
    element("exaggeration").value = sliderOf(state.exaggeration);
    element("azimuth").value = state.azimuth;
    element("altitude").value = state.altitude;
    if (state.year !== null) element("year").value = state.year;
    apply();
    if (h.camera && h.target) {
      camera.position.set(...h.camera);
      controls.target.set(...h.target);
      controls.update();
    }
    draw();
  }

  // ---- the two kinds of data -----------------------------------------------------------------------------------------

  async function showTerrain(t) {
    terrain = new Terrain(t);
    await terrain.build();
    const eras = terrain.eras;
    if (eras.length) {
      const year = element("year");
      // Years are astronomical inside: there is a year 0.
      year.min = eras[0].first;
      year.max = Math.max(eras[eras.length - 1].last, eras[eras.length - 1].first);
      state.year = eras[0].first;
      element("time").hidden = false;
      element("year").hidden = year.min === year.max;
      const span = Math.max(1, year.max - year.min);
      for (const era of eras.length > 1 ? eras : []) {
        const mark = document.createElement("i");
        mark.style.left = `${(100 * (era.first - year.min)) / span}%`;
        mark.title = era.label;
        element("marks").append(mark);
      }
    } else {
      element("layer-polities").parentElement.hidden = true;
    }
    element("interval").textContent = `${terrain.interval} m`;
    state.exaggeration = factorOf(sliderOf(t.exaggeration));
  }

  async function showMesh(m) {
    const raw = bytes(m.file);
    const buffer = raw.buffer;
    const plain = () => new THREE.MeshLambertMaterial({ color: 0xd8cbb2, side: THREE.DoubleSide });
    const own = (geometry) => {
      if (!geometry.getAttribute("normal")) geometry.computeVertexNormals();
      const material = plain();
      material.vertexColors = !!geometry.getAttribute("color");
      if (material.vertexColors) material.color.set(0xffffff);
      return new THREE.Mesh(geometry, material);
    };
    let object;
    if (m.form === "glb") object = (await new THREE.GLTFLoader().parseAsync(buffer, "")).scene;
    if (m.form === "stl") object = own(new THREE.STLLoader().parse(buffer));
    if (m.form === "ply") object = own(new THREE.PLYLoader().parse(buffer));
    if (m.form === "obj") {
      object = new THREE.OBJLoader().parse(new TextDecoder().decode(raw));
      object.traverse((o) => {
        if (!o.isMesh) return;
        const colours = !!o.geometry.getAttribute("color");
        o.material = plain();
        o.material.vertexColors = colours;
        if (colours) o.material.color.set(0xffffff);
      });
    }
    // Ours have z up; glTF has y.
    if (m.form !== "glb") object.rotation.x = -Math.PI / 2;
    const group = new THREE.Group();
    group.add(object);
    group.updateMatrixWorld(true);
    const box = new THREE.Box3().setFromObject(group);
    const size = box.getSize(new THREE.Vector3());
    const middle = box.getCenter(new THREE.Vector3());
    const unit = 100 / Math.max(size.x, size.z, 1e-9);
    object.position.sub(new THREE.Vector3(middle.x, box.min.y, middle.z));
    const outer = new THREE.Group();
    outer.add(group);
    outer.scale.setScalar(unit);
    scene.add(outer);
    const sun = new THREE.DirectionalLight(0xffffff, 2.4);
    sun.position.set(-1, 1.4, -1);
    scene.add(sun, new THREE.HemisphereLight(0xffffff, 0xb8a78c, 1.4));
    model = {
      group,
      half: new THREE.Vector3((size.x * unit) / 2, size.y * unit, (size.z * unit) / 2),
      describe(found) {
        const name = found.object.name ? `${found.object.name}\n` : "";
        const p = group.worldToLocal(found.point.clone()).add(new THREE.Vector3(middle.x, box.min.y, middle.z));
        return `${name}height ${p.y.toFixed(1)}\neast ${p.x.toFixed(1)}, north ${(-p.z).toFixed(1)}`;
      },
    };
    element("layers").hidden = true;
    for (const id of ["azimuth", "altitude"]) element(id).parentElement.hidden = true;
  }

  async function main() {
    if (!data) throw new Error("data.js is missing beside this page");
    start();
    document.title = data.title;
    element("title").textContent = data.title;
    element("subtitle").textContent = data.subtitle;
    element("note").textContent = data.note;
    if (data.terrain) await showTerrain(data.terrain);
    else await showMesh(data.mesh);
    listen();
    setMode("orbit");
    apply();
    goHome();
    restore();
    element("panel").hidden = false;
    element("loading").hidden = true;
    renderer.render(scene, camera);
    document.documentElement.dataset.state = "ready";
  }

  main().catch((error) => {
    const where = element("loading");
    where.hidden = false;
    where.className = "failed";
    where.textContent = `This page cannot be drawn: ${error.message}`;
    document.documentElement.dataset.state = "failed";
  });

  // For scripts that look at the page from inside.
  window.histmapView = {
    /** Draws at once. */
    frame,
    /** Place on the screen, in pixels, of a cell's centre. */
    onScreen(col, row) {
      const p = terrain.toWorld(col, row, terrain.height(col, row)).project(camera);
      const r = canvas.getBoundingClientRect();
      return [r.left + ((p.x + 1) / 2) * r.width, r.top + ((1 - p.y) / 2) * r.height];
    },
  };
})();
