// What the page of `histmap view` takes from three.js; rebuild.sh makes three.min.js of it.
export {
  BufferAttribute,
  BufferGeometry,
  ClampToEdgeWrapping,
  Color,
  DataTexture,
  DirectionalLight,
  DoubleSide,
  FloatType,
  GLSL3,
  Group,
  HemisphereLight,
  LinearFilter,
  Mesh,
  MeshLambertMaterial,
  NearestFilter,
  PerspectiveCamera,
  Raycaster,
  RedFormat,
  RedIntegerFormat,
  RGBAFormat,
  Scene,
  ShaderMaterial,
  SRGBColorSpace,
  UnsignedByteType,
  UnsignedShortType,
  Vector2,
  Vector3,
  WebGLRenderer,
  Box3,
} from "three";
export { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
export { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";
export { OBJLoader } from "three/examples/jsm/loaders/OBJLoader.js";
export { PLYLoader } from "three/examples/jsm/loaders/PLYLoader.js";
export { STLLoader } from "three/examples/jsm/loaders/STLLoader.js";
