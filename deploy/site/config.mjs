// How VitePress makes the site: what deploy/site/pages.mjs has prepared, in a folder for the version DOCS_VERSION.
import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'

const version = process.env.DOCS_VERSION ?? 'main'
const sidebar = JSON.parse(readFileSync(new URL('../sidebar.json', import.meta.url)))
// Anchors are as on GitHub, since the same documents are read there.
const slugify = (title) => title.toLowerCase().replace(/[^a-z0-9 _-]/g, '').replaceAll(' ', '-')
const first = (item) => item.link ?? first(item.items[0])

export default defineConfig({
  title: 'fleetflow',
  description: 'Many Kubernetes clusters from one hub, every rollout a workflow',
  lang: 'en',
  base: `/${version}/`,
  srcDir: 'pages',
  outDir: process.env.DOCS_OUT,
  cleanUrls: false,
  markdown: { anchor: { slugify }, languageAlias: { console: 'shellsession' } },
  vite: { build: { chunkSizeWarningLimit: 4096 } },
  themeConfig: {
    outline: { level: [2, 3] },
    nav: [
      ...sidebar.map((part) => ({ text: part.text, link: first(part) })),
      { component: 'Versions', props: { version } }
    ],
    sidebar,
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: 'https://github.com/fleetflow/fleetflow' }]
  }
})
