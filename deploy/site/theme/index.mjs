// The theme of VitePress, with a menu of versions.
import DefaultTheme from 'vitepress/theme'
import './site.css'
import Versions from './Versions.vue'

export default { extends: DefaultTheme, enhanceApp: ({ app }) => app.component('Versions', Versions) }
