'use strict';
// The page: a drawing of the machine, sliders or a player, plots, and what a server reports of a live machine.

const LIVE_SECONDS = 30;
const FRAME_MS = 1000 / 30;
const LEAST_RATIO = 0.3;      // of the pixels of the screen, along each side, while it moves
const element = id => document.getElementById(id);
const scene = JSON.parse(element('scene').textContent);

// Unpack the arrays of the page: {name: {rows, columns, values, at(row, column)}}, column by column.
async function unpack() {
  const bytes = Uint8Array.from(atob(element('data').textContent), character => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const buffer = await new Response(stream).arrayBuffer(), found = {};
  let place = 0;
  for (const [name, type, rows, columns] of scene.arrays) {
    const values = new (type === 'uint' ? Uint32Array : Float32Array)(buffer, place, rows * columns);
    found[name] = {rows, columns, values, at: (i, k) => values[k * rows + i]};
    place += 4 * rows * columns;
  }
  return found;
}

const rowOf = (array, i) => Array.from({length: array.columns}, (_, k) => array.at(i, k));

// What a row between two frames shows: joints interpolated.
function between(array, i, part) {
  const a = rowOf(array, i);
  if (part === 0 || i + 1 >= array.rows) return a;
  return a.map((value, k) => value + part * (array.at(i + 1, k) - value));
}

class Drawing {
  constructor(stage, machine, arrays) {
    this.machine = machine;
    this.renderer = new THREE.WebGLRenderer({antialias: true});
    this.sharp = this.ratio = window.devicePixelRatio || 1;
    this.renderer.setPixelRatio(this.ratio);
    this.mean = 0;
    stage.prepend(this.renderer.domElement);
    this.world = new THREE.Scene();
    this.world.background = new THREE.Color(0xeef2f6);
    this.world.add(new THREE.HemisphereLight(0xffffff, 0x9aa5b0, 2.4));
    const sun = new THREE.DirectionalLight(0xffffff, 2.0);
    sun.position.set(3, -4, 6);
    this.world.add(sun);
    this.links = this.bodies(arrays, false);
    this.ghost = this.bodies(arrays, true);
    this.ghost.forEach(group => { group.visible = false; });
    this.move(this.links, machine.poses);
    this.frameAll();
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.01 * this.size, 50 * this.size);
    this.camera.up.set(0, 0, 1);
    this.controls = new THREE.OrbitControls(this.camera, this.renderer.domElement);
    this.home();
    const grid = this.grid = new THREE.GridHelper(4 * this.cell * 10, 40, 0x9aa7b4, 0xccd4dc);
    grid.rotation.x = Math.PI / 2;
    grid.position.set(this.middle.x, this.middle.y, this.low);
    this.world.add(grid, new THREE.AxesHelper(0.3 * this.size));
    this.axes = this.links.map(group => { const axes = new THREE.AxesHelper(0.08 * this.size); group.add(axes); return axes; });
    this.mass = new THREE.Group();
    const ball = new THREE.Mesh(new THREE.SphereGeometry(0.02 * this.size), new THREE.MeshStandardMaterial({color: 0xffc400}));
    this.plumb = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({color: 0xb08000}));
    this.ball = ball;
    this.mass.add(ball, this.plumb);
    this.world.add(this.mass);
    new ResizeObserver(() => this.resize(stage)).observe(stage);
    this.resize(stage);
    this.controls.addEventListener('change', () => { this.dirty = true; });
    this.dirty = true;
  }

  bodies(arrays, ghostly) {
    const groups = scene.links.map(() => { const group = new THREE.Group(); group.matrixAutoUpdate = false; this.world.add(group); return group; });
    const materials = this.materials = ghostly ? this.materials : scene.links.map(() => []);
    for (const shape of scene.shapes) {
      const [r, g, b, a] = shape.color;
      const color = new THREE.Color().setRGB(r, g, b, 'srgb');
      const material = new THREE.MeshStandardMaterial(ghostly
        ? {color: 0x2f7fd0, transparent: true, opacity: 0.22, depthWrite: false, polygonOffset: true,
          polygonOffsetFactor: 2, polygonOffsetUnits: 8}
        : {color, roughness: 0.65, metalness: 0.15, transparent: a < 1, opacity: a, flatShading: shape.form === 'mesh'});
      if (!ghostly) { material.userData = {color: color.clone(), kind: shape.form}; materials[shape.link].push(material); }
      const mesh = new THREE.Mesh(this.geometry(shape, arrays), material);
      mesh.matrixAutoUpdate = false;
      mesh.matrix.copy(matrix(shape.pose));
      if (shape.form === 'cylinder' || shape.form === 'capsule') mesh.matrix.multiply(new THREE.Matrix4().makeRotationX(Math.PI / 2));
      groups[shape.link].add(mesh);
    }
    return groups;
  }

  geometry(shape, arrays) {
    if (shape.form === 'box') return new THREE.BoxGeometry(...shape.size);
    if (shape.form === 'sphere') return new THREE.SphereGeometry(shape.radius, 24, 16);
    if (shape.form === 'cylinder') return new THREE.CylinderGeometry(shape.radius, shape.radius, shape.length, 32);
    if (shape.form === 'capsule') return new THREE.CapsuleGeometry(shape.radius, shape.length, 8, 24);
    const vertices = arrays[`vertices ${shape.mesh}`], triangles = arrays[`triangles ${shape.mesh}`];
    const geometry = new THREE.BufferGeometry(), points = new Float32Array(3 * vertices.rows);
    for (let i = 0; i < vertices.rows; i++) for (let k = 0; k < 3; k++) points[3 * i + k] = vertices.at(i, k);
    const index = new Uint32Array(3 * triangles.rows);
    for (let i = 0; i < triangles.rows; i++) for (let k = 0; k < 3; k++) index[3 * i + k] = triangles.at(i, k);
    geometry.setAttribute('position', new THREE.BufferAttribute(points, 3));
    geometry.setIndex(new THREE.BufferAttribute(index, 1));
    geometry.computeVertexNormals();
    return geometry;
  }

  frameAll(points = []) {
    const box = new THREE.Box3();
    for (let i = 0; i < points.length; i += 3) box.expandByPoint(new THREE.Vector3(points[i], points[i + 1], points[i + 2]));
    this.links.forEach(group => { group.updateMatrixWorld(true); box.expandByObject(group); });
    const size = box.getSize(new THREE.Vector3());
    this.middle = box.getCenter(new THREE.Vector3());
    this.size = Math.max(size.x, size.y, size.z, 1e-3);
    this.low = box.min.z;
    if (this.grid) this.grid.position.z = this.low;
    this.cell = 10 ** Math.round(Math.log10(this.size / 8));
    this.span = size;
  }

  home() {
    // the machine from the side on which its plane is seen best
    const along = this.span.x >= this.span.y, far = 1.6 * this.size;
    this.camera.position.set(this.middle.x + (along ? 0.35 : 1) * far, this.middle.y - (along ? 1 : 0.35) * far, this.middle.z + 0.35 * far);
    this.controls.target.copy(this.middle);
    this.controls.update();
    this.dirty = true;
  }

  resize(stage) {
    const width = stage.clientWidth || 1, height = stage.clientHeight || 1;
    this.renderer.setSize(width, height);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.dirty = true;
  }

  // Draw fewer pixels where frames take longer than they may, and all of them again once the machine stands still.
  adapt(moving, frameMs) {
    if (!moving) this.mean = 0;
    else this.mean = this.mean ? 0.8 * this.mean + 0.2 * frameMs : 0.8 * FRAME_MS;
    const coarser = this.mean > FRAME_MS;
    const ratio = !moving ? this.sharp : coarser ? Math.max(LEAST_RATIO * this.sharp, 0.8 * this.ratio) : this.ratio;
    if (coarser) this.mean = 0.8 * FRAME_MS;      // of the old ratio no more
    if (ratio === this.ratio) return;
    this.ratio = ratio;
    this.renderer.setPixelRatio(ratio);
    this.dirty = true;
  }

  move(groups, poses) {
    groups.forEach((group, k) => { group.matrix.copy(matrix(poses[k])); group.matrixWorldNeedsUpdate = true; });
    this.dirty = true;
  }

  update() {
    this.move(this.links, this.machine.poses);
    const centre = element('mass').checked && this.machine.centreOfMass;
    if (centre) {
      this.ball.position.set(...centre);
      this.plumb.geometry.setFromPoints([new THREE.Vector3(...centre), new THREE.Vector3(centre[0], centre[1], this.low)]);
    }
  }

  showGhost(poses) {
    this.ghost.forEach(group => { group.visible = poses !== null; });
    if (poses) this.move(this.ghost, poses);
    this.dirty = true;
  }

  // A line through points (n, 3).
  setPath(points) {
    if (this.path) this.world.remove(this.path);
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute('position', new THREE.BufferAttribute(points, 3));
    this.path = new THREE.Line(geometry, new THREE.LineBasicMaterial({color: 0x8e24aa}));
    this.path.visible = element('path').checked;
    this.path.frustumCulled = false;
    this.world.add(this.path);
    this.dirty = true;
  }

  // colors: {link: [r, g, b]}; of a link with cylinders these only; other links have their own
  paint(colors) {
    this.materials.forEach((some, link) => some.forEach(material => {
      const round = some.some(one => one.userData.kind === 'cylinder');
      if (colors[link] && (!round || material.userData.kind === 'cylinder')) material.color.setRGB(...colors[link], 'srgb'); else material.color.copy(material.userData.color);
    }));
    this.dirty = true;
  }

  render() {
    this.mass.visible = element('mass').checked;
    this.axes.forEach(axes => { axes.visible = element('frames').checked; });
    if (this.path) this.path.visible = element('path').checked;
    if (this.dirty) { this.renderer.render(this.world, this.camera); this.dirty = false; }
  }
}

const matrix = p => new THREE.Matrix4().set(...p, 0, 0, 0, 1);

// Push red, pull blue, nothing white; share from -1 to 1.
function diverging(share) {
  const s = Math.max(-1, Math.min(1, share || 0)), rest = 1 - Math.abs(s);
  return s >= 0 ? [0.85 + 0.1 * rest, 0.93 * rest + 0.1, 0.93 * rest + 0.08] : [0.93 * rest + 0.05, 0.93 * rest + 0.25 * (1 - rest), 0.8 + 0.15 * rest];
}

// Dark blue over green to yellow; share from 0 to 1.
function rising(share) {
  const s = Math.max(0, Math.min(1, share || 0));
  return [0.27 + 0.73 * s * s, 0.05 + 0.85 * s, 0.38 + 0.25 * Math.sin(Math.PI * s) - 0.25 * s];
}

class Viewer {
  constructor(arrays) {
    this.arrays = arrays;
    this.machine = new Machine(scene);
    this.shadow = new Machine(scene);
    this.frames = 0;
    this.playing = false;
    this.t = this.from = this.to = 0;
    this.row = 0;
    this.peak = scene.actuators.map(one => one.limit || 1e-9);
    for (const text of scene.messages) this.say(text);
    try {
      this.drawing = new Drawing(element('stage'), this.machine, arrays);
    } catch (error) {
      this.say(`The machine cannot be drawn, since this browser has no WebGL (${error.message}); everything else works.`);
    }
    element('home').onclick = () => this.drawing && this.drawing.home();
    for (const id of ['ghost', 'path', 'mass', 'frames', 'color']) element(id).onchange = () => this.refresh();
    if (scene.live) this.startLive();
    else if (arrays.time) this.startPlayer();
    else this.startSliders();
    this.colorChoices();
    this.refresh();
    requestAnimationFrame(now => this.tick(now));
  }

  // The effort of full color is that of the declared limit, else the largest so far.
  raisePeak(effort) {
    scene.actuators.forEach((one, k) => { if (!one.limit) this.peak[k] = Math.max(this.peak[k], Math.abs(effort[k] || 0)); });
  }

  say(text) {
    const line = document.createElement('p');
    line.textContent = text;
    element('messages').append(line);
  }

  colorChoices() {
    const choices = [['none', 'as declared']];
    if (scene.actuators.length) {
      if (scene.live || this.arrays.effort) choices.push(['force', 'by force']);
      else if (!this.arrays.time && this.machine.holdingEfforts()) choices.push(['force', 'by holding force']);
      if ((scene.pressures || []).length) choices.push(['pressure', 'by pressure']);
    }
    element('color').replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
    element('color').value = choices.length > 1 ? choices[1][0] : 'none';
    for (const id of ['ghost', 'path']) element(id).parentElement.hidden = id === 'ghost' ? !(this.arrays.reference || scene.live)
      : !(this.arrays.time || scene.live);
  }

  // sliders

  startSliders() {
    this.sliders = scene.sliders.map((slider, k) => {
      const box = document.createElement('div'), head = document.createElement('div');
      const name = document.createElement('span'), value = document.createElement('b'), input = document.createElement('input');
      box.className = 'slider';
      Object.assign(input, {type: 'range', min: slider.lower, max: slider.upper, step: 'any', value: this.machine.x[k]});
      input.dataset.joint = slider.name;
      name.textContent = slider.name + (slider.actuated ? '' : ' (no actuator)');
      head.append(name, value);
      box.append(head, input);
      element('side').append(box);
      input.oninput = () => this.drag(k, Number(input.value));
      return {box, input, value, unit: slider.unit};
    });
    this.efforts = document.createElement('div');
    element('side').append(this.efforts);
  }

  drag(k, value) {
    const x = this.machine.x;
    x[k] = value;
    const reached = this.machine.moveTo(x);
    this.sliders.forEach((slider, i) => {
      slider.box.classList.toggle('stopped', i === k && !reached);
      if (i === k && !reached) slider.input.value = this.machine.x[i];
    });
    this.note = reached ? '' : `${scene.sliders[k].name} stops at ${short(this.machine.x[k])} ${scene.sliders[k].unit}: no closed loop beyond`;
    this.refresh();
  }

  refreshSliders() {
    this.machine.x.forEach((value, k) => { this.sliders[k].value.textContent = `${short(value)} ${this.sliders[k].unit}`; });
    const beyond = this.machine.beyondLimits;
    element('note').textContent = [this.note, beyond.length ? `beyond its limit: ${beyond.join(', ')}` : ''].filter(Boolean).join('; ');
    const held = this.machine.holdingEfforts();
    this.effort = held;
    this.efforts.replaceChildren();
    if (held) {
      this.raisePeak(held);
      const head = document.createElement('div');
      head.innerHTML = '<b>holds it against gravity</b>';
      this.efforts.append(head, ...held.map((value, k) => {
        const line = document.createElement('div');
        line.textContent = `${scene.actuators[k].name}: ${short(Math.abs(value) < 1e-6 ? 0 : value)} ${scene.actuators[k].unit}`;
        return line;
      }));
    }
  }

  // playback

  startPlayer() {
    const {time, joints} = this.arrays;
    this.from = time.at(0, 0);
    this.to = time.at(time.rows - 1, 0);
    this.t = this.from;
    element('player').hidden = false;
    Object.assign(element('time'), {min: this.from, max: this.to, value: this.from});
    element('time').oninput = () => this.seek(Number(element('time').value));
    element('play').onclick = () => this.play(!this.playing);
    window.addEventListener('keydown', event => {
      if (event.key === ' ' && event.target === document.body) { event.preventDefault(); this.play(!this.playing); }
      if (event.key === 'ArrowRight') this.seek(this.t + 0.02);
      if (event.key === 'ArrowLeft') this.seek(this.t - 0.02);
    });
    this.plots = scene.signals.map((signal, k) => {
      const plot = new Plot(element('side'), signal, t => this.seek(t));
      plot.source = [this.arrays[`signal ${k}`], this.arrays[`wanted ${k}`]];
      return plot;
    });
    const redraw = () => { this.plots.forEach(plot => plot.draw(time, ...plot.source)); this.refresh(); };
    window.addEventListener('resize', redraw);
    redraw();
    if (this.arrays.effort) this.peak = scene.actuators.map((one, k) => one.limit || this.largest(this.arrays.effort, k));
    this.peakPressure = Math.max(1e-9, ...(scene.pressures || []).flatMap(name => [0, 1].map(k => this.largest(this.arrays[`pressure ${name}`], k))));
    if (scene.tool && this.drawing) {
      const points = new Float32Array(3 * time.rows), base = this.arrays.base;
      for (let i = 0; i < time.rows; i++) {
        const poses = this.shadow.place(rowOf(joints, i), base ? rowOf(base, i) : undefined);
        points.set(apply(poses[scene.tool.link], scene.tool.point), 3 * i);
      }
      this.drawing.setPath(points);
      this.drawing.frameAll(points);
      this.drawing.home();
    }
  }

  largest(array, column) {
    let most = 0;
    for (let i = 0; i < array.rows; i++) if (Math.abs(array.at(i, column)) > most) most = Math.abs(array.at(i, column));
    return most;
  }

  play(on) {
    if (on && this.t >= this.to) this.seek(this.from);
    this.playing = on;
    element('play').textContent = on ? 'pause' : 'play';
  }

  seek(t) {
    this.t = Math.max(this.from, Math.min(this.to, t));
    this.refresh();
  }

  refreshPlayer() {
    const {time, joints, base, reference, effort} = this.arrays;
    let low = 0, high = time.rows - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (time.at(middle, 0) <= this.t) low = middle; else high = middle - 1;
    }
    this.row = low;
    const next = Math.min(low + 1, time.rows - 1), gap = time.at(next, 0) - time.at(low, 0);
    const part = gap > 0 && gap < 0.5 ? Math.max(0, (this.t - time.at(low, 0)) / gap) : 0;
    // between a quaternion and the next a straight line is close enough at this rate, but not of unit length
    this.machine.show(between(joints, low, part), base ? rowOf(base, low) : undefined);
    if (this.drawing) {
      const wanted = reference && element('ghost').checked ? between(reference, low, part) : null;
      this.drawing.showGhost(wanted && wanted.every(Number.isFinite) ? this.shadow.place(wanted) : null);
    }
    this.effort = effort ? rowOf(effort, low) : null;
    this.pressure = {};
    for (const name of scene.pressures || []) this.pressure[name] = rowOf(this.arrays[`pressure ${name}`], low);
    this.plots.forEach(plot => plot.cursor(this.t, low));
    element('time').value = this.t;
    element('clock').textContent = `${this.t.toFixed(2)} / ${this.to.toFixed(2)} s`;
  }

  // live

  startLive() {
    const empty = columns => ({rows: 0, columns, kept: [], at(i, k) { return this.kept[i][k]; }});
    const actuated = scene.actuators.length ? scene.actuators : scene.sliders;
    this.history = {time: empty(1), position: empty(actuated.length), effort: empty(scene.actuators.length)};
    this.plots = [new Plot(element('side'), {title: 'position', unit: 'm, rad', names: actuated.map(one => one.name)})];
    if (scene.actuators.length) {
      this.plots.push(new Plot(element('side'), {title: 'effort', unit: 'N, N m', names: scene.actuators.map(one => one.name)}));
    }
    element('note').textContent = 'waiting for the first state';
    const events = new EventSource('events');
    events.onmessage = event => this.receive(JSON.parse(event.data), actuated);
    events.onerror = () => { element('note').textContent = 'the connection to the server is lost; waiting for it'; };
  }

  receive(state, actuated) {
    element('note').textContent = state.note || '';
    if (!state.q) return;
    this.machine.show(state.q, state.base);
    this.effort = state.effort;
    if (state.effort) this.raisePeak(state.effort);
    this.wanted = state.reference || null;
    const {time, position, effort} = this.history;
    this.began = this.began || state.t;
    state.t -= this.began;
    if (time.rows && state.t < time.at(time.rows - 1, 0)) for (const one of [time, position, effort]) { one.kept = []; one.rows = 0; }
    time.kept.push([state.t]);
    position.kept.push(actuated.map(one => state.q[one.row]));
    effort.kept.push(scene.actuators.map((_, k) => (state.effort && state.effort[k] !== null ? state.effort[k] : NaN)));
    while (time.kept[0][0] < state.t - LIVE_SECONDS) for (const one of [time, position, effort]) one.kept.shift();
    for (const one of [time, position, effort]) one.rows = time.kept.length;
    this.t = state.t;
    this.received = (this.received || 0) + 1;
    this.refresh();
  }

  refreshLive() {
    if (!this.history.time.rows) return;
    const {time, position, effort} = this.history;
    [position, effort].slice(0, this.plots.length).forEach((values, k) => {
      this.plots[k].draw(time, values, null);
      this.plots[k].cursor(this.t, time.rows - 1);
    });
    if (!this.drawing) return;
    this.drawing.showGhost(this.wanted && element('ghost').checked ? this.shadow.place(this.wanted) : null);
    if (scene.tool) {
      const p = apply(this.machine.poses[scene.tool.link], scene.tool.point);
      this.trail = [...(this.trail || []).slice(-900), p];
      this.drawing.setPath(new Float32Array(this.trail.flat()));
    }
  }

  // all

  refresh() {
    if (this.sliders) this.refreshSliders();
    else if (scene.live) this.refreshLive();
    else this.refreshPlayer();
    if (!this.drawing) return;
    this.drawing.update();
    const colors = {}, choice = element('color').value;
    if (choice === 'force' && this.effort) {
      scene.actuators.forEach((actuator, k) => {
        if (actuator.colored && this.effort[k] !== null && Number.isFinite(this.effort[k])) {
          actuator.links.forEach(link => { colors[link] = diverging(this.effort[k] / (this.peak[k] || 1)); });
        }
      });
    } else if (choice === 'pressure' && this.pressure) {
      for (const actuator of scene.actuators) {
        const pressures = this.pressure[actuator.name];
        // the barrel has the color of chamber A, the rod that of chamber B
        if (pressures) [...actuator.links].reverse().forEach((link, k) => { colors[link] = rising(pressures[k] / this.peakPressure); });
      }
    }
    this.drawing.paint(colors);
  }

  tick(now) {
    const frameMs = now - (this.now || now), passed = Math.min(0.25, frameMs / 1000);
    this.now = now;
    if (this.playing) {
      this.t += passed * Number(element('speed').value);
      if (this.t >= this.to) { this.t = this.to; this.play(false); }
      this.refresh();
    }
    this.frames += 1;
    if (this.drawing) {
      this.drawing.adapt(this.playing, frameMs);
      this.drawing.render();
    }
    requestAnimationFrame(next => this.tick(next));
  }
}

unpack().then(arrays => { window.viewer = new Viewer(arrays); }).catch(error => {
  element('note').textContent = `this page cannot be shown: ${error.message}`;
  throw error;
});
