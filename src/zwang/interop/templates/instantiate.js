async function instantiate(source, layout) {
  const Numbers = layout.dtype === "float32" ? Float32Array : Float64Array;
  const bytes = source.arrayBuffer ? await source.arrayBuffer() : source;
  const { exports: x } = (await WebAssembly.instantiate(bytes, {})).instance;
  const view = (pointer, size) => new Numbers(x.memory.buffer, pointer, size);
  const bytesPerNumber = Numbers.BYTES_PER_ELEMENT;
  x.reset();
  return {
    q: view(x.q(), layout.q.length),
    v: view(x.v(), layout.v.length),
    activation: view(x.activation(), layout.activation.length),
    control: view(x.control_values(), layout.control.length),
    parameters: view(x.parameter_values(), layout.parameters.length),
    get time() { return x.time_value(); },
    get statusText() {
      const text = new Uint8Array(x.memory.buffer, x.status_text());
      return String.fromCharCode(...text.subarray(0, text.indexOf(0)));
    },
    reset: () => x.reset(), // to the initial state, control and parameters of the export
    step: (steps = 1) => x.step(steps),
    call(name, ...inputs) {
      if (!Object.hasOwn(layout.functions, name))
        throw new RangeError(`there is no function ${name}; there are ${Object.keys(layout.functions)}`);
      const { exported, arguments: all } = layout.functions[name];
      const needed = all.filter(({ input }) => input);
      if (inputs.length !== needed.length)
        throw new RangeError(`${name} takes ${needed.map((x) => x.name)}, not ${inputs.length} arrays`);
      let at = x.workspace_values();
      const places = all.map(({ size }) => { const place = at; at += size * bytesPerNumber; return place; });
      needed.forEach(({ name: argument, size }, k) => {
        if (inputs[k].length !== size) throw new RangeError(`${name}: ${argument} needs ${size} numbers`);
        view(places[k], size).set(inputs[k]);
      });
      x[exported](...places);
      const outputs = all.map(({ name, size, input }, k) => [name, input, view(places[k], size).slice()]);
      const results = outputs.filter(([name, input]) => !input && name !== "work");
      return Object.fromEntries(results.map(([n, , y]) => [n, y]));
    },
  };
}
