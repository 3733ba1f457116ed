// Parts of the page that show numbers: heat maps, bars, texts.

// An element with attributes, listeners (on...) and children.
export function element (name, attributes = {}, ...children) {
  const node = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value)
    else if (value === true) node.setAttribute(key, '')
    else if (value !== false && value != null) node.setAttribute(key, value)
  }
  node.append(...children.filter(child => child != null))
  return node
}

export const number = (value, digits = 2) => value == null ? '–' : value.toFixed(digits)

// A part of the page; `isWide`: it stands beside the others where there is room.
export function panel (title, about, children, isWide = false) {
  return element('section', { class: isWide ? 'card wide' : 'card', 'aria-label': title },
    element('h2', {}, title), about ? element('p', { class: 'about' }, about) : null, ...children)
}

// Words x words (or blocks) with weights from 0 to 1. Cells are read by pointer and by arrow keys.
export function heatMap ({ label, rows, columns, values, say }) {
  const readout = element('figcaption', { 'aria-live': 'polite' })
  const head = element('tr', {}, element('td'),
    ...columns.map(text => element('th', { scope: 'col' }, element('span', {}, text))))
  const cells = rows.map((row, r) => columns.map((column, c) => {
    const cell = element('td', {
      role: 'gridcell',
      tabindex: r + c === 0 ? 0 : -1,
      'aria-label': say(row, column, number(values[r][c]))
    })
    cell.style.setProperty('--weight', Math.min(1, Math.max(0, values[r][c])))
    return cell
  }))
  const bodyRows = rows.map((text, r) =>
    element('tr', {}, element('th', { scope: 'row', title: text }, text), ...cells[r]))
  const table = element('table', { role: 'grid', 'aria-label': label },
    element('thead', {}, head), element('tbody', {}, ...bodyRows))

  const place = cell => {
    const r = cells.findIndex(row => row.includes(cell))
    return r < 0 ? null : [r, cells[r].indexOf(cell)]
  }
  const mark = cell => {
    const found = cell && place(cell)
    table.querySelectorAll('.marked').forEach(node => node.classList.remove('marked'))
    if (!found) return
    const [r, c] = found
    cell.classList.add('marked')
    bodyRows[r].firstChild.classList.add('marked')
    head.children[c + 1].classList.add('marked')
    readout.textContent = cell.getAttribute('aria-label')
  }
  const cellOf = event => event.target.closest('td[role=gridcell]')
  table.addEventListener('pointerover', event => mark(cellOf(event)))
  table.addEventListener('click', event => cellOf(event)?.focus())
  table.addEventListener('focusin', event => {
    const cell = cellOf(event)
    if (!cell) return
    cells.flat().forEach(other => { other.tabIndex = other === cell ? 0 : -1 })
    mark(cell)
  })
  table.addEventListener('keydown', event => {
    const found = place(event.target)
    if (!found) return
    const [r, c] = found
    const next = {
      ArrowUp: [r - 1, c],
      ArrowDown: [r + 1, c],
      ArrowLeft: [r, c - 1],
      ArrowRight: [r, c + 1],
      Home: [r, 0],
      End: [r, columns.length - 1]
    }[event.key]
    const cell = next && cells[next[0]]?.[next[1]]
    if (next) event.preventDefault()
    if (cell) cell.focus()
  })
  return element('figure', { class: 'map' }, element('div', { class: 'scroll' }, table), readout)
}

// A row for each name: a bar from 0 to 1, and the value in words.
export function bars (label, entries) {
  return element('table', { class: 'bars', 'aria-label': label }, element('tbody', {},
    ...entries.map(({ name, share, text }) => {
      const bar = element('span', { class: 'bar' })
      bar.style.setProperty('--share', Math.min(1, Math.max(0, share)))
      return element('tr', {}, element('th', { scope: 'row', title: name }, name),
        element('td', {}, bar), element('td', { class: 'value' }, text))
    })))
}

// A text whose words that are not in the other text are marked.
export function markedText (parts) {
  const nodes = []
  parts.forEach(({ text, isSame }, index) => {
    if (index) nodes.push(' ')
    nodes.push(isSame ? text : element('mark', {}, text))
  })
  return element('p', { class: 'text', dir: 'auto' }, ...nodes)
}
