// Runs the search of a built site without a browser: node search_in_node.js SITE QUERY ...
// It prints a list of pages for each query, the best first, as JSON.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const read = (...parts) => fs.readFileSync(path.join(site, ...parts), "utf8");
const workers = "assets/javascripts/workers";
const name = fs.readdirSync(path.join(site, workers)).find((file) => /^search\..*\.js$/.test(file));

let search;
let answer;
const worker = {
  addEventListener: (_, listener) => { search = listener; },
  postMessage: (message) => { answer = message; },
  console,
};
worker.self = worker;
vm.runInNewContext(read(workers, name), worker);

let retype;
const page = { addEventListener: (_, listener) => { retype = listener; } };
vm.runInNewContext(read("site", "search.js"), { document: page });

async function ask(type, data) {
  answer = undefined;
  search({ data: { type, data } });
  while (answer === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
  return answer.data;
}

(async () => {
  await ask(0, { ...JSON.parse(read("search", "search_index.json")), options: {} });
  const results = [];
  for (const query of queries) {
    const field = { value: query, matches: () => true };
    retype({ target: field });
    const { items } = await ask(2, field.value);
    results.push(items.map(([best]) => best.location.split("#")[0]));
  }
  console.log(JSON.stringify(results));
})();
