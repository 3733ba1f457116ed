// The page of the server in node: what it needs of a browser, and requests that a test answers.
//
// node page_in_node.mjs SCENARIO prints what the page then shows, as JSON. app.js lies beside it.

class Element {
  constructor (tag) {
    Object.assign(this, { tag, children: [], attributes: {}, listeners: {}, dataset: {}, value: '' })
    this.style = { setProperty () {} }
    this.classList = { toggle () {} }
  }

  append (...nodes) { this.children.push(...nodes) }
  replaceChildren (...nodes) { this.children = nodes }
  setAttribute (name, value) { this.attributes[name] = value }
  removeAttribute (name) { delete this.attributes[name] }
  getAttribute (name) { return this.attributes[name] }
  addEventListener (name, listener) { this.listeners[name] = listener }
  focus () {}
  requestSubmit () { this.listeners.submit({ preventDefault () {} }) }
  set textContent (text) { this.children = [text] }
  get textContent () { return this.children.map(node => node.textContent ?? node).join(' ') }
  get valueAsNumber () { return Number(this.value) }

  get selectedIndex () {
    const values = this.children.map(option => option.attributes.value ?? option.textContent)
    return Math.max(0, values.indexOf(this.value))
  }

  querySelector (tag) { return this.querySelectorAll(tag)[0] }

  querySelectorAll (tag) {
    return this.children.filter(node => node instanceof Element).flatMap(node =>
      [...(node.tag === tag ? [node] : []), ...node.querySelectorAll(tag)])
  }
}

const elements = {}
const beam = new Element('input')
const search = new Element('label')
search.append(beam)
globalThis.document = {
  body: new Element('body'),
  createElement: tag => new Element(tag),
  querySelector: () => null,
  querySelectorAll: () => [search],
  getElementById: id => {
    elements[id] ??= Object.assign(new Element(id), { parentElement: new Element('label') })
    return elements[id]
  }
}

const waiting = [] // requests: {path, body, answer}
globalThis.fetch = (path, options) => new Promise((resolve, reject) => {
  options?.signal?.addEventListener('abort', () => reject(options.signal.reason))
  const answer = (text, status = 200) => resolve({
    ok: status < 400, status, statusText: 'Bad Gateway', text: async () => text
  })
  const fail = () => reject(new TypeError('Failed to fetch'))
  waiting.push({ path, body: JSON.parse(options?.body ?? 'null'), answer, fail })
})
const settled = () => new Promise(resolve => setTimeout(resolve))

// Answer the oldest requests, as many as there are functions body -> value.
async function answer (...values) {
  for (const value of values) {
    const request = waiting.shift()
    request.answer(JSON.stringify(value(request.body)))
  }
  await settled()
}

async function submit (text) {
  elements.sources.querySelectorAll('textarea')[0].value = text
  elements.form.requestSubmit()
  await settled()
}

const shown = () => ({
  results: elements.results.textContent,
  status: elements.status.textContent,
  isBusy: 'aria-busy' in elements.results.attributes,
  hasBeam: !beam.disabled
})

// ---------------------------------------------------------------- what the server answers

const direction = (source, target) => ({
  direction: `${source}-${target}`,
  reverse: `${target}-${source}`,
  sources: [source],
  target,
  operations: ['translate', 'score']
})
const models = () => ({
  models: [{
    name: 'dual',
    engine: 'fairseq',
    direction: 'xx-yy',
    directions: [direction('xx', 'yy'), direction('yy', 'xx')],
    subwords: null
  }, {
    name: 'pieces',
    direction: 'xx-yy',
    directions: [direction('xx', 'yy'), direction('yy', 'xx')],
    subwords: 'sentencepiece'
  }, {
    name: 'labels',
    direction: null,
    directions: [{ direction: null, reverse: null, sources: [], target: null, operations: ['classify'] }]
  }],
  limits: { max_beam: 5, max_characters: 10 }
})
const hypothesis = text => ({ text, score: -1, tokens: [text], token_scores: [-1], extras: {} })
const translated = ({ sentences: [source] }) => ({
  translations: [{ source, source_tokens: [source], hypotheses: [hypothesis(`of ${source}`)], error: null }]
})
const scored = ({ sources }) => ({ scores: sources.map(() => ({ score: -1, error: null })) })
const unscored = ({ sources }) => ({
  scores: sources.map(() => ({ score: null, error: 'too many tokens' }))
})

// A translation of a model with sub-words.
async function inPieces (tokens) {
  elements.model.value = 'pieces'
  elements.model.listeners.change()
  await submit('first')
  await answer(body => {
    const answers = translated(body)
    const scores = tokens.map(() => -1)
    Object.assign(answers.translations[0].hypotheses[0], { tokens, token_scores: scores })
    return answers
  })
  await answer(translated, scored, scored)
}

const scenarios = {
  async answers () {
    await submit('first')
    await answer(translated)
    await answer(translated, scored, scored)
  },
  async a_word_of_no_probability () {
    await submit('first')
    await answer(body => {
      const answers = translated(body)
      const words = { tokens: ['a', 'b'], token_scores: [-1, null] } // JSON has no infinity
      Object.assign(answers.translations[0].hypotheses[0], words)
      return answers
    })
    await answer(translated, scored, scored)
  },
  async characters_in_bytes () {
    await inPieces(['\u2581', '<0xE1>', '<0x88>', '<0xB0>', 'ab', '\u2581<0', 'xE1>'])
  },
  async tags_beside_pieces () {
    await inPieces(['O', 'B-PER', '</s>'])
  },
  async another_direction () {
    await submit('first')
    elements.direction.value = 'yy-xx'
    elements.direction.listeners.change()
    await answer(translated)
  },
  async another_direction_on_the_way_back () {
    await submit('first')
    await answer(translated)
    elements.direction.value = 'yy-xx'
    elements.direction.listeners.change()
    await settled()
  },
  async another_text_on_the_way_back () {
    await submit('first')
    await answer(translated)
    await submit('second')
  },
  async labels () {
    elements.model.value = 'labels'
    elements.model.listeners.change()
  },
  async labels_that_are_numbers () {
    await scenarios.labels()
    await submit('first')
    await answer(() => ({
      classifications: [{ label: '7', probabilities: { 7: 0.4, 1: 0.3, 3: 0.3 }, error: null }]
    }))
  },
  async no_text () {
    await submit('first')
    await submit(' ')
  },
  async page_of_a_proxy () {
    await submit('first')
    waiting.shift().answer('<html>', 502)
    await settled()
  },
  async ended_server () {
    await submit('first')
    waiting.shift().fail()
    await settled()
  },
  async ended_server_on_the_way_back () {
    await submit('first')
    await answer(translated)
    waiting.forEach(request => request.fail())
    await settled()
  },
  async no_score () {
    await submit('first')
    await answer(translated)
    await answer(translated, scored, unscored)
  }
}

await import('./app.js')
await answer(models)
await answer(() => ({ version: '1' }))
await scenarios[process.argv[2]]()
console.log(JSON.stringify(shown()))
