// The page of `fairseq-ext serve`: choose a direction, type, look at what the model does.

import * as panels from './panels.js'
import { element, number, panel } from './views.js'

const $ = id => document.getElementById(id)
const VERBS = { translate: 'Translate', classify: 'Classify', perplexity: 'Score' }
const state = { models: [], limits: {}, alpha: 0.5, running: null }

const model = () => state.models[$('model').selectedIndex]
const direction = () => model().directions[$('direction').selectedIndex]
const operation = () => direction().operations[0]

async function ask (path, value) {
  const answer = await fetch(path, value && {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(value),
    signal: state.running?.signal
  }).catch(error => {
    if (error.name === 'AbortError') throw error
    throw new Error('The server does not answer: has it ended?') // browsers say "Failed to fetch"
  })
  const content = read(await answer.text())
  if (answer.ok && content) return content
  const reasons = [content?.path, content?.error].filter(Boolean)
  throw new Error(reasons.join(': ') || `${answer.status} ${answer.statusText}: not of this server`)
}

// JSON as a value; null for anything else, such as the page of a proxy.
function read (text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function say (text, isError = false) {
  $('status').textContent = text
  $('status').classList.toggle('error', isError)
}

// Give up what is being computed: what it answers is no longer asked for.
function stop () {
  state.running?.abort()
  state.running = null
  $('results').removeAttribute('aria-busy')
}

// ---------------------------------------------------------------- what can be chosen

function showModel () {
  const { directions } = model()
  $('direction').replaceChildren(...directions.map(({ direction, sources, target }) =>
    element('option', { value: direction ?? '' }, `${sources.join('+')} → ${target}`)))
  $('direction').parentElement.hidden = directions.length === 1 && !directions[0].direction
  $('direction').value = model().direction ?? ''
  showDirection()
}

function showDirection () {
  stop()
  const texts = sources().map(area => area.value)
  const names = direction().sources.length ? direction().sources : ['text']
  $('sources').replaceChildren(...names.map((name, index) => {
    const id = `source-${index}`
    const area = element('textarea', {
      id, rows: 3, lang: name === 'text' ? null : name, dir: 'auto',
      placeholder: 'Type a sentence', spellcheck: 'false', required: names.length > 1
    })
    area.value = texts[index] ?? ''
    return element('div', {}, element('label', { for: id }, name), area)
  }))
  $('swap').hidden = !direction().reverse
  document.querySelectorAll('.search').forEach(label => {
    label.hidden = operation() !== 'translate'
    // a field that is not seen must not refuse the form
    label.querySelector('input').disabled = label.hidden
  })
  $('go').textContent = VERBS[operation()]
  $('results').replaceChildren()
  say('')
}

const sources = () => [...$('sources').querySelectorAll('textarea')]

function swap () {
  const best = document.querySelector('input[name=hypothesis]:checked')
  const text = best?.dataset.text
  $('direction').value = direction().reverse
  showDirection()
  if (text) sources()[0].value = text
  sources()[0].focus()
}

// ---------------------------------------------------------------- what is shown

async function run () {
  stop()
  const texts = sources().map(area => area.value.trim())
  if (!texts.some(Boolean)) return say('Type a sentence first.')
  const mine = state.running = new AbortController()
  const item = texts.length > 1 ? texts : texts[0]
  const chosen = { model: model().name, ...(direction().direction && { direction: direction().direction }) }
  const start = performance.now()
  say('…')
  $('results').setAttribute('aria-busy', 'true')
  try {
    await { translate, classify, perplexity }[operation()](chosen, item)
    say(`${((performance.now() - start) / 1000).toFixed(2)} s`)
  } catch (error) {
    if (mine.signal.aborted) return
    $('results').replaceChildren()
    say(error.message, true)
  }
  $('results').removeAttribute('aria-busy')
}

async function classify (chosen, text) {
  const { classifications: [result] } = await ask('classify', { ...chosen, texts: [text] })
  if (result.error) throw new Error(result.error)
  $('results').replaceChildren(...panels.classificationPanels(result))
}

async function perplexity (chosen, text) {
  const { perplexities: [result] } = await ask('perplexity', { ...chosen, texts: [text] })
  if (result.error) throw new Error(result.error)
  $('results').replaceChildren(...panels.perplexityPanels(result, model().subwords))
}

async function translate (chosen, item) {
  const beam = Math.min(Math.max(1, Math.round($('beam').valueAsNumber) || 5), state.limits.max_beam)
  const nbest = Math.min(Math.max(1, Math.round($('nbest').valueAsNumber) || 1), beam)
  $('beam').value = beam
  $('nbest').value = nbest
  const isFairseq = model().engine === 'fairseq'
  const { translations: [result] } = await ask('translate', {
    ...chosen, sentences: [item], beam, nbest, attention: true, extras: isFairseq
  })
  if (result.error) throw new Error(result.error)
  const kind = model().subwords
  const entries = result.hypotheses.map(hypothesis => ({ hypothesis, forward: hypothesis.score }))
  const reverse = direction().reverse
  let problem = null
  if (reverse && model().directions.find(entry => entry.direction === reverse)
    .operations.includes('score')) {
    // the limits of the server may refuse it; the translations are there all the same
    problem = await lookBack(chosen, reverse, result, entries).catch(error => {
      if (error.name === 'AbortError') throw error
      return error.message
    })
  }
  showTranslations(result, entries, reverse, kind, problem)
}

// The way back by the same model, and both terms of dual inference: log P(y|x) and log P(x|y).
// Returns why some of it is missing, or undefined.
async function lookBack (chosen, reverse, result, entries) {
  const texts = entries.map(entry => entry.hypothesis.text)
  const same = texts.map(() => result.source)
  const [back, forward, backward] = await Promise.all([
    ask('translate', { ...chosen, direction: reverse, sentences: texts }),
    ask('score', { ...chosen, sources: same, targets: texts }),
    ask('score', { ...chosen, direction: reverse, sources: texts, targets: same })
  ])
  entries.forEach((entry, index) => {
    entry.back = back.translations[index].hypotheses[0].text
    entry.forward = forward.scores[index].score
    entry.backward = backward.scores[index].score
  })
  return [...back.translations, ...forward.scores, ...backward.scores]
    .map(answer => answer.error).find(Boolean)
}

const dual = entry => state.alpha * entry.forward + (1 - state.alpha) * entry.backward

function showTranslations (result, entries, reverse, kind, problem) {
  const isDual = entries.every(entry => entry.forward != null && entry.backward != null)
  const list = element('div', { role: 'radiogroup', 'aria-label': 'Translations', class: 'hypotheses' })
  const details = element('div', { class: 'details' })
  let current = entries[0]

  const select = entry => {
    current = entry
    details.replaceChildren(...[
      panels.attentionPanel(result, entry.hypothesis, kind),
      reverse ? panels.backPanel(result, entry.back, reverse) : null,
      panels.routerPanel(result, entry.hypothesis, kind),
      panels.twinPanel(entry.hypothesis, kind),
      panels.surprisePanel(entry.hypothesis.tokens, entry.hypothesis.token_scores, kind)
    ].filter(Boolean))
  }
  const sort = () => {
    const order = isDual ? [...entries].sort((a, b) => dual(b) - dual(a)) : entries
    list.replaceChildren(...order.map((entry, rank) => hypothesisRow(entry, rank, isDual, current, select)))
  }
  const slider = isDual ? alphaSlider(() => sort()) : null
  const about = isDual
    ? 'Ranked by dual inference: α · log₂ P(y|x) + (1 − α) · log₂ P(x|y), each per token.'
    : 'The score is log₂ P per token.' + (problem ? ` Without the way back: ${problem}` : '')
  if (isDual) current = [...entries].sort((a, b) => dual(b) - dual(a))[0]
  sort()
  select(current)
  $('results').replaceChildren(panel('Translations', about, [slider, list]), details)
}

function alphaSlider (changed) {
  const output = element('output', {}, number(state.alpha))
  const input = element('input', {
    type: 'range', id: 'alpha', min: 0, max: 1, step: 0.05, value: state.alpha,
    oninput: event => {
      state.alpha = event.target.valueAsNumber
      output.textContent = number(state.alpha)
      changed()
    }
  })
  return element('label', { class: 'alpha' }, 'α ', input, output)
}

function hypothesisRow (entry, rank, isDual, current, select) {
  const { text, score } = entry.hypothesis
  const radio = element('input', {
    type: 'radio', name: 'hypothesis', checked: entry === current, onchange: () => select(entry)
  })
  radio.dataset.text = text
  const figures = isDual
    ? [['dual', dual(entry)], ['P(y|x)', entry.forward], ['P(x|y)', entry.backward]]
    : [['score', score]]
  return element('label', { class: 'hypothesis' }, radio,
    element('span', { class: 'text', lang: direction().target, dir: 'auto' }, text || '(empty)'),
    element('span', { class: 'figures' }, ...figures.map(([name, value]) =>
      element('span', {}, element('small', {}, name), ` ${number(value)}`))))
}

// ---------------------------------------------------------------- start

async function start () {
  try {
    Object.assign(state, await ask('models'))
    $('version').textContent = (await ask('health')).version
  } catch (error) {
    return say(error.message, true)
  }
  $('beam').max = $('nbest').max = state.limits.max_beam
  $('model').replaceChildren(...state.models.map(entry => element('option', {}, entry.name)))
  $('model').addEventListener('change', showModel)
  $('direction').addEventListener('change', showDirection)
  $('swap').addEventListener('click', swap)
  $('form').addEventListener('submit', event => {
    event.preventDefault()
    run()
  })
  $('form').addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault()
      $('form').requestSubmit()
    }
  })
  showModel()
  document.body.dataset.ready = 'true'
}

start()
