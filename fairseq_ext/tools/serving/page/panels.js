// What is shown of a result: one function for each kind.

import { bars, element, heatMap, markedText, number, panel } from './views.js'
import { compared, mergedAttention, mergedRows, sum, words } from './words.js'

// Attention over the source; `pieces`: tokens as the model reads them instead of words.
export function attentionPanel (result, hypothesis, kind) {
  if (!hypothesis.attention?.length) return null
  const holder = element('div')
  const draw = pieces => {
    const rows = words(hypothesis.tokens, pieces ? null : kind)
    const columns = words(result.source_tokens, pieces ? null : kind)
    holder.replaceChildren(heatMap({
      label: 'Attention: rows are words of the translation, columns words of the source',
      rows: rows.map(row => row.text),
      columns: columns.map(column => column.text),
      values: mergedAttention(hypothesis.attention, rows, columns),
      say: (row, column, value) => `“${row}” looks at “${column}”: ${value}`
    }))
  }
  draw(false)
  const toggle = element('label', { class: 'toggle' }, element('input', {
    type: 'checkbox', onchange: event => draw(event.target.checked)
  }), 'pieces')
  return panel('Attention', 'Each row is a word of the translation: where it looks in the source.',
    [kind ? toggle : null, holder], true)
}

// The way back: the translation of the translation.
export function backPanel (result, back, direction) {
  if (!back) return null
  const text = markedText(compared(back, result.source))
  return panel('There and back',
    `The same model translates the translation back (${direction}). Marked words are not in the source.`,
    [text])
}

// Weights of the blocks of a routed model, a map for each layer.
export function routerPanel (result, hypothesis, kind) {
  const router = hypothesis.extras.router
  if (!router) return null
  const maps = Object.entries(router).map(([layer, weights]) => {
    const tokens = layer.startsWith('encoder') ? result.source_tokens : hypothesis.tokens
    // a routed task may write a token of its own that is no word of the text
    const rows = words(tokens.slice(0, weights.length), kind)
    return element('div', {}, element('h3', {}, layer), heatMap({
      label: `Use of the blocks in ${layer}: rows are words, columns blocks`,
      rows: rows.map(row => row.text),
      columns: weights[0].map((_, block) => `block ${block + 1}`),
      values: mergedRows(weights, rows),
      say: (row, column, value) => `“${row}” uses ${column}: ${value}`
    }))
  })
  return panel('Blocks by word', 'How much of each shared block a word uses.',
    [element('div', { class: 'maps' }, ...maps)])
}

// Distance of the states of a twin, a bar for each word.
export function twinPanel (hypothesis, kind) {
  const distance = hypothesis.extras.twin_distance
  if (!distance) return null
  const groups = words(hypothesis.tokens, kind).filter(group => distance[group.places[0]] != null)
  const values = groups.map(group => sum(group.places.map(place => distance[place])) /
    group.places.length)
  const most = Math.max(...values, 1e-9)
  return panel('Distance of the twins',
    'How far the forward network is from the backward one at each word: large where it could not foresee.',
    [bars('Distance of the twins by word', groups.map((group, index) => ({
      name: group.text, share: values[index] / most, text: number(values[index])
    })))])
}

// log2 P of each word; the longer the bar, the less it was expected.
export function surprisePanel (tokens, tokenScores, kind) {
  if (!tokenScores?.length) return null
  const groups = words(tokens, kind)
  const values = groups.map(group => {
    const scores = group.places.map(place => tokenScores[place])
    return scores.includes(null) ? null : sum(scores) // null: P is 0
  })
  const most = Math.max(...values.map(value => -value), 1)
  return panel('Surprise by word', 'log₂ P of each word, given the words before it.',
    [bars('Logarithm of the probability of each word', groups.map((group, index) => ({
      name: group.text,
      share: values[index] === null ? 1 : -values[index] / most,
      text: number(values[index])
    })))])
}

// Labels, and where a duo classifier looks with both embeddings.
export function classificationPanels (result) {
  // sorted here: JavaScript puts names that are numbers first, and in their own order
  const labels = Object.entries(result.probabilities).map(([name, probability]) => ({
    name, share: probability, text: `${(100 * probability).toFixed(1)} %`
  })).sort((a, b) => b.share - a.share || (b.name === result.label) - (a.name === result.label))
  const panels = [panel('Labels', null, [bars('Probabilities of the labels', labels)])]
  if (result.attention) {
    const names = { s: 'embedding S', p: 'embedding P' }
    const kinds = Object.keys(result.attention)
    panels.push(panel('Attention over both embeddings', 'Which words decide, in either embedding.',
      [heatMap({
        label: 'Attention: rows are words, columns the two embeddings',
        rows: result.tokens,
        columns: kinds.map(kind => names[kind] ?? kind),
        values: result.tokens.map((_, place) => kinds.map(kind => result.attention[kind][place])),
        say: (row, column, value) => `“${row}” in ${column}: ${value}`
      })]))
  }
  return panels
}

export function perplexityPanels (result, kind) {
  const value = element('p', { class: 'text' }, `Perplexity ${number(result.perplexity)}`)
  return [panel('Text', null, [value]), twinPanel(result, kind),
    surprisePanel(result.tokens, result.token_scores, kind)].filter(Boolean)
}
