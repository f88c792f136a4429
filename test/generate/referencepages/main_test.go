package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const whole = `# Kinds

| [Fruit](#fruit) |

## Food

What is eaten.

### Fruit

Has a [Skin](#skin).

#### Skin

In [Fruit](#fruit).

### Cake

Has [Fruit](#fruit) with [Skin](#skin), and is [unknown](#unknown).

## Drinks

None.
`

func TestEachKindHasItsPageAndLinksLeadThere(t *testing.T) {
	assert.Equal(t, map[string]string{
		"README.md": "# Kinds\n\n| [Fruit](fruit.md) |\n\n## Food\n\nWhat is eaten.\n\n## Drinks\n\nNone.\n",
		"fruit.md":  "# Fruit\n\nHas a [Skin](#skin).\n\n## Skin\n\nIn [Fruit](#fruit).\n",
		"cake.md":   "# Cake\n\nHas [Fruit](fruit.md) with [Skin](fruit.md#skin), and is [unknown](#unknown).\n",
	}, divide(whole))
}

func TestPagesOfKindsThatAreGoneAreRemoved(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(t.TempDir(), "whole.md")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "gone.md"), nil, 0o600))
	require.NoError(t, os.WriteFile(file, []byte(whole), 0o600))
	require.NoError(t, run(file, folder))
	assert.NoFileExists(t, filepath.Join(folder, "gone.md"))
	assert.FileExists(t, filepath.Join(folder, "fruit.md"))
	assert.NoFileExists(t, file)
}
