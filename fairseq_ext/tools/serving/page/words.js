// Sub-words as words: which tokens belong together, and weights of tokens as weights of words.

export const END = '</s>'
const SHOWN_END = 'end'

const BYTES = /^<0x[0-9A-F]{2}>$/

// The text of the pieces of a word: a model with byte_fallback spells some characters in bytes.
function joined (pieces) {
  let text = ''
  for (let place = 0; place < pieces.length;) {
    let end = place
    while (end < pieces.length && BYTES.test(pieces[end])) end++
    const bytes = pieces.slice(place, end).map(piece => parseInt(piece.slice(3, 5), 16))
    text += new TextDecoder().decode(new Uint8Array(bytes)) + (pieces[end] ?? '')
    place = end + 1
  }
  return text
}

// [{text, places}]: the words of tokens; each token by itself where `kind` is null, and where nothing
// has cut them: tags and trees beside texts of sentencepiece, all of which begin with its mark.
export function words (tokens, kind) {
  if (kind === 'sentencepiece' && !tokens.some(token => token.startsWith('▁'))) kind = null
  const groups = []
  let isOpen = false // the last token goes on
  tokens.forEach((token, place) => {
    const isEnd = token === END
    let text = isEnd ? SHOWN_END : token
    let begins = true
    if (!isEnd && kind === 'sentencepiece') {
      begins = token.startsWith('▁')
      text = begins ? token.slice(1) : token
    } else if (!isEnd && kind) {
      begins = !isOpen
      text = token.endsWith('@@') ? token.slice(0, -2) : token
    }
    const last = groups[groups.length - 1]
    if (begins || !last || last.isEnd) groups.push({ pieces: [text], places: [place], isEnd })
    else {
      last.pieces.push(text)
      last.places.push(place)
    }
    isOpen = token.endsWith('@@')
  })
  return groups.map(({ pieces, places, isEnd }) => {
    return { text: kind === 'sentencepiece' ? joined(pieces) : pieces.join(''), places, isEnd }
  })
}

export const sum = numbers => numbers.reduce((total, number) => total + (number ?? 0), 0)
const mean = numbers => sum(numbers) / numbers.length

// Attention of words: the mean over the tokens of a target word, the sum over those of a source word.
export function mergedAttention (attention, rows, columns) {
  return rows.map(row => columns.map(column => mean(
    row.places.map(place => sum(column.places.map(other => attention[place]?.[other])))
  )))
}

// Rows of a matrix over tokens as rows over words: their means.
export function mergedRows (matrix, rows) {
  return rows.map(row => matrix[0].map((_, column) =>
    mean(row.places.map(place => matrix[place]?.[column]))))
}

// [{text, isSame}]: words of a text, and whether they are also in the other, in the same order.
export function compared (text, other) {
  const a = text.split(/\s+/).filter(Boolean)
  const b = other.split(/\s+/).filter(Boolean)
  const common = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0))
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i][j] = a[i] === b[j]
        ? common[i + 1][j + 1] + 1
        : Math.max(common[i + 1][j], common[i][j + 1])
    }
  }
  const result = []
  for (let i = 0, j = 0; i < a.length; i++) {
    while (j < b.length && a[i] !== b[j] && common[i][j + 1] === common[i][j]) j++
    const isSame = j < b.length && a[i] === b[j]
    result.push({ text: a[i], isSame })
    if (isSame) j++
  }
  return result
}
