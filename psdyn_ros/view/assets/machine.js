'use strict';
// A machine as numbers: poses of its links, its loops closed, the efforts that hold it. No drawing.
//
// q: positions of the movable joints; x: those of the sliders. Poses are arrays of 12, the rows of (3, 4).

const EPSILON = 1e-12;          // of a closed loop [m, 1]
const CLOSED = 1e-9;
const LARGEST_STEP = 0.02;      // of a slider between two closures [m, rad]
const SMALLEST_STEP = 1e-5;
const LARGEST_JUMP = 0.35;      // of a dependent joint in such a step [m, rad]; more is another branch

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const turn = (m, v) => [m[0] * v[0] + m[1] * v[1] + m[2] * v[2], m[4] * v[0] + m[5] * v[1] + m[6] * v[2],
  m[8] * v[0] + m[9] * v[1] + m[10] * v[2]];
const apply = (m, v) => { const t = turn(m, v); return [t[0] + m[3], t[1] + m[7], t[2] + m[11]]; };

function compose(a, b) {
  const c = new Array(12);
  for (let i = 0; i < 12; i += 4) {
    for (let j = 0; j < 4; j++) c[i + j] = a[i] * b[j] + a[i + 1] * b[4 + j] + a[i + 2] * b[8 + j] + (j === 3 ? a[i + 3] : 0);
  }
  return c;
}

function rotation(axis, angle) {
  const [x, y, z] = axis, c = Math.cos(angle), s = Math.sin(angle), v = 1 - c;
  return [c + x * x * v, x * y * v - z * s, x * z * v + y * s, 0, x * y * v + z * s, c + y * y * v, y * z * v - x * s, 0,
    x * z * v - y * s, y * z * v + x * s, c + z * z * v, 0];
}

function poseOf([px, py, pz, x, y, z, w]) {
  return [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), px,
    2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), py,
    2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), pz];
}

// Solve (A'WA) X = B for symmetric positive definite S = A'WA by elimination; null where S is singular.
function solve(S, B) {
  const n = S.length, a = S.map((row, i) => [...row, ...B[i]]);
  for (let k = 0; k < n; k++) {
    let p = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(a[i][k]) > Math.abs(a[p][k])) p = i;
    if (!(Math.abs(a[p][k]) > 1e-300)) return null;
    [a[k], a[p]] = [a[p], a[k]];
    for (let i = 0; i < n; i++) {
      if (i === k) continue;
      const f = a[i][k] / a[k][k];
      if (f !== 0) for (let j = k; j < a[k].length; j++) a[i][j] -= f * a[k][j];
    }
  }
  return a.map((row, i) => row.slice(n).map(value => value / row[i]));
}

// Solve the least squares problem A X = B; rows may repeat one another.
function leastSquares(A, B) {
  const n = A[0].length, S = [], R = [];
  let trace = 0;
  for (let i = 0; i < n; i++) {
    S.push(A[0].map((_, j) => A.reduce((sum, row) => sum + row[i] * row[j], 0)));
    R.push(B[0].map((_, j) => A.reduce((sum, row, k) => sum + row[i] * B[k][j], 0)));
    trace += S[i][i];
  }
  for (let i = 0; i < n; i++) S[i][i] += 1e-14 * trace;
  return solve(S, R);
}

class Machine {
  constructor(scene) {
    this.scene = scene;
    this.q = [...scene.position];
    this.base = scene.base;
    this.rows = scene.sliders.map(slider => slider.row);
    this.above = scene.links.map(() => []);     // of each link: joints of the tree that move it
    for (const joint of scene.joints) {
      this.above[joint.child] = [...this.above[joint.parent], ...(joint.row < 0 ? [] : [joint.row])];
    }
    const inLoops = new Set();
    for (const closure of scene.closures) {
      const a = this.above[closure.a], b = this.above[closure.b];
      closure.moving = [...b.filter(row => !a.includes(row)).map(row => [row, 1]),
        ...a.filter(row => !b.includes(row)).map(row => [row, -1])];
      closure.moving.forEach(([row]) => inLoops.add(row));
    }
    this.dependent = [...inLoops].filter(row => !this.rows.includes(row)).sort((a, b) => a - b);
    this.screws = new Array(this.q.length);     // [axis, point of it, slides] in the world
    this.poses = new Array(scene.links.length).fill(null);
    this.place(this.q);
  }

  get x() { return this.rows.map(row => this.q[row]); }

  // Set the poses of all links at joint positions q.
  place(q, base = this.base) {
    const still = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0];
    this.poses.fill(still);
    for (const joint of this.scene.joints) {
      const frame = compose(this.poses[joint.parent], joint.origin);
      let pose = frame;
      if (joint.type === 'floating') {
        pose = compose(frame, poseOf(base));
      } else if (joint.row >= 0) {
        const axis = joint.axis, slides = joint.type === 'prismatic', value = q[joint.row];
        pose = compose(frame, slides ? [1, 0, 0, axis[0] * value, 0, 1, 0, axis[1] * value, 0, 0, 1, axis[2] * value]
          : rotation(axis, value));
        this.screws[joint.row] = [turn(frame, axis), [frame[3], frame[7], frame[11]], slides];
      }
      this.poses[joint.child] = pose;
    }
    return this.poses;
  }

  // Residuals of all closures and their derivatives by the joints in `columns`, at the poses that are placed.
  linearized(columns) {
    const residual = [], jacobian = [];
    for (const closure of this.scene.closures) {
      const A = this.poses[closure.a], B = this.poses[closure.b];
      const pa = apply(A, closure.pa), pb = apply(B, closure.pb), gap = sub(pb, pa);
      const add = (value, force, moment) => {
        const row = new Array(columns.length).fill(0);
        for (const [joint, sign] of closure.moving) {
          const column = columns.indexOf(joint);
          if (column < 0) continue;
          const [axis, point, slides] = this.screws[joint];
          row[column] = sign * (slides ? dot(force, axis) : dot(cross(axis, sub(pb, point)), force) + dot(moment, axis));
        }
        residual.push(value);
        jacobian.push(row);
      };
      for (const u of closure.positions) { const v = turn(A, u); add(dot(v, gap), v, [0, 0, 0]); }
      for (const [u, w] of closure.directions) {
        const v = turn(A, u), d = turn(B, w);
        add(dot(v, d), [0, 0, 0], cross(d, v));
      }
    }
    return [residual, jacobian];
  }

  // Close the loops near q, whose sliders stay; null where they do not close there.
  closed(q) {
    const found = [...q];
    if (!this.dependent.length) return found;
    for (let k = 0; k < 25; k++) {
      this.place(found);
      const [residual, jacobian] = this.linearized(this.dependent);
      const worst = Math.max(...residual.map(Math.abs));
      if (worst < EPSILON || (k === 24 && worst < CLOSED)) {
        const jump = Math.max(...this.dependent.map(row => Math.abs(found[row] - q[row])));
        return jump < LARGEST_JUMP ? found : null;
      }
      const step = leastSquares(jacobian, residual.map(r => [-r]));
      if (step === null || !step.every(([d]) => Math.abs(d) < 1)) return null;
      this.dependent.forEach((row, i) => { found[row] += step[i][0]; });
    }
    return null;
  }

  // Move the sliders to x in steps, loops closed in each; stops where they do not close, and returns whether it got there.
  moveTo(x) {
    const start = this.x, far = Math.max(1e-12, ...x.map((value, i) => Math.abs(value - start[i])));
    const smallest = Math.min(0.5, SMALLEST_STEP / far);
    let way = 0, step = Math.min(1, LARGEST_STEP / far);
    while (way < 1 && step >= smallest) {
      const next = Math.min(1, way + step), q = [...this.q];
      this.rows.forEach((row, i) => { q[row] = start[i] + (x[i] - start[i]) * next; });
      const found = this.closed(q);
      if (found === null) {
        step /= 2;
      } else {
        this.q = found;
        way = next;
        step = Math.min(2 * step, LARGEST_STEP / far);
      }
    }
    this.place(this.q);
    return way === 1;
  }

  // Set all joints, whose loops are closed.
  show(q, base) {
    this.q = [...q];
    if (base) this.base = base;
    this.place(this.q);
  }

  get centreOfMass() {
    let mass = 0, moment = [0, 0, 0];
    for (const body of this.scene.bodies) {
      const p = apply(this.poses[body.link], body.com);
      mass += body.mass;
      moment = moment.map((value, i) => value + body.mass * p[i]);
    }
    return mass > 0 ? moment.map(value => value / mass) : null;
  }

  // Efforts of the actuators that hold the machine against gravity; null where they do not fix it.
  holdingEfforts() {
    const {actuators, weights, gravity, bodies} = this.scene, n = this.rows.length;
    if (!weights || this.scene.base) return null;
    const gradient = new Array(this.q.length).fill(0);
    for (const body of bodies) {
      const p = apply(this.poses[body.link], body.com);
      for (const row of this.above[body.link]) {
        const [axis, point, slides] = this.screws[row];
        gradient[row] -= body.mass * dot(gravity, slides ? axis : cross(axis, sub(p, point)));
      }
    }
    const slopes = this.q.map((_, row) => this.rows.map(other => (other === row ? 1 : 0)));
    if (this.dependent.length) {
      const [, K] = this.linearized(this.dependent), [, L] = this.linearized(this.rows);
      const G = leastSquares(K, L.map(row => row.map(value => -value)));
      if (G === null) return null;
      this.dependent.forEach((row, i) => { slopes[row] = G[i]; });
    }
    const wanted = this.rows.map((_, i) => [gradient.reduce((sum, value, row) => sum + value * slopes[row][i], 0)]);
    const A = actuators.map(actuator => slopes[actuator.row]);
    const S = [];
    for (let i = 0; i < n; i++) {
      S.push(this.rows.map((_, j) => A.reduce((sum, row, k) => sum + row[i] * row[j] / weights[k], 0)));
    }
    const z = solve(S, wanted);
    return z && A.map((row, k) => row.reduce((sum, value, i) => sum + value * z[i][0], 0) / weights[k]);
  }

  // Joints beyond their limits.
  get beyondLimits() {
    return this.scene.names.filter((_, row) => {
      const [lower, upper] = this.scene.limits[row], value = this.q[row];
      return (lower !== null && value < lower - 1e-6) || (upper !== null && value > upper + 1e-6);
    });
  }
}
