// Copies the guides into the folder that VitePress reads, as pages of a site, and makes the navigation from the map in
// deploy/docs/README.md. The arguments are the repository and that folder.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

const [, , repository, folder] = process.argv
const source = 'https://github.com/fleetflow/fleetflow/blob/main/'
const guides = 'deploy/docs'
const map = posix.join(guides, 'README.md')

// homes has the page of each document of the repository that is on the site.
const homes = new Map([[map, 'index.md']])
for (const name of readdirSync(join(repository, guides), { recursive: true })) {
  const path = posix.join(guides, name)
  if (name.endsWith('.md') && path !== map) homes.set(path, name.replace(/README\.md$/, 'index.md'))
}
const text = readFileSync(join(repository, map), 'utf8')
for (const [, target] of text.matchAll(/\]\(([^)\s]+\.md)\)/g)) {
  const path = posix.join(guides, target)
  if (!homes.has(path) && path.startsWith('deploy/')) {
    homes.set(path, posix.dirname(path).replace('deploy', 'about').replaceAll('/', '-') + '.md')
  }
}

// linked is the text of a document whose links lead to pages of the site, or else to the repository.
function linked(text, path) {
  const link = (whole, before, target, after) => {
    if (/^([a-z]+:|#|\/)/.test(target)) return whole
    const [to, anchor] = target.split('#')
    const found = posix.join(posix.dirname(path), to)
    const end = anchor === undefined ? '' : '#' + anchor
    if (homes.has(found)) return `${before}/${homes.get(found)}${end}${after}`
    if (found.startsWith(guides + '/images/')) return `${before}/images/${posix.basename(found)}${after}`
    if (!existsSync(join(repository, found))) throw new Error(`${path} links to ${target}, which is not there`)
    return before + source + found + end + after
  }
  let fenced = false
  return text.split('\n').map((line) => {
    if (line.trim().startsWith('```')) fenced = !fenced
    return fenced ? line : line.split(/(`[^`]*`)/).map((part) => (part.startsWith('`') ? part : part.replace(/(\]\()([^)\s]+)(\))/g, link))).join('')
  }).join('\n')
}

rmSync(folder, { recursive: true, force: true })
for (const [path, page] of homes) {
  const to = join(folder, page)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, linked(readFileSync(join(repository, path), 'utf8'), path))
}
cpSync(join(repository, guides, 'images'), join(folder, 'public/images'), { recursive: true })

// The map has a heading for each part, and tables of pages in which a row of bold letters begins a group.
const sidebar = []
for (const line of text.split('\n')) {
  const heading = line.match(/^## (.*)$/)
  if (heading) sidebar.push({ text: heading[1], collapsed: true, items: [] })
  const group = line.match(/^\| \*\*(.+)\*\* \|/)
  if (group) sidebar.at(-1).items.push({ text: group[1], items: [] })
  const entry = line.match(/^\| \[(.+?)\]\(([^)\s]+\.md)\)/)
  if (!entry) continue
  const home = homes.get(posix.join(guides, entry[2]))
  const at = sidebar.at(-1).items.findLast((item) => item.items)
  const item = { text: entry[1], link: '/' + home.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '') }
  ;(at ? at.items : sidebar.at(-1).items).push(item)
}
// The references have a page for each verb and each kind, which come below the list of them.
for (const part of ['cli', 'api']) {
  const pages = readdirSync(join(repository, guides, part)).filter((name) => name !== 'README.md').sort()
  const titles = pages.map((name) => ({
    text: readFileSync(join(repository, guides, part, name), 'utf8').match(/^# (.*)$/m)[1],
    link: `/${part}/${name.replace(/\.md$/, '')}`
  }))
  for (const item of sidebar.flatMap((s) => s.items)) {
    if (item.link === `/${part}/`) Object.assign(item, { collapsed: true, items: titles })
  }
}
writeFileSync(join(folder, '..', 'sidebar.json'), JSON.stringify(sidebar))
console.log(`${homes.size} pages`)
