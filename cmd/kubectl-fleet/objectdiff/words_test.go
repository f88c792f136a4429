package objectdiff

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// marked writes words with brackets around those that stand out.
func marked(words []Word) string {
	var out strings.Builder
	for _, word := range words {
		if word.Changed {
			out.WriteString("[" + word.Text + "]")
			continue
		}
		out.WriteString(word.Text)
	}
	return out.String()
}

func TestWordsThatDifferStandOut(t *testing.T) {
	for sentence, test := range map[string]struct{ before, after, left, right string }{
		"a version":              {"    image: registry.example/shop:1.41.0", "    image: registry.example/shop:1.42.0", "    image: registry.example/shop:[1.41.0]", "    image: registry.example/shop:[1.42.0]"},
		"more than one":          {"args: [--level=info, --fast]", "args: [--level=debug, --fast, --safe]", "args: [--level=[info], --fast]", "args: [--level=[debug], --fast[, --safe]]"},
		"nothing but signs":      {"- alpha", "- omega", "- alpha", "- omega"},
		"the same":               {"replicas: 3", "replicas: 3", "replicas: 3", "replicas: 3"},
		"one is empty":           {"", "replicas: 3", "", "replicas: 3"},
		"letters of any writing": {"name: Größe שלום", "name: Größe عالم", "name: Größe [שלום]", "name: Größe [عالم]"},
		"not text":               {"name: a\xff", "name: b\xff", "name: [a]\xff", "name: [b]\xff"},
	} {
		t.Run(sentence, func(t *testing.T) {
			left, right := Words(test.before, test.after)
			assert.Equal(t, test.left, marked(left))
			assert.Equal(t, test.right, marked(right))
		})
	}
}

func TestWordsMakeUpTheLines(t *testing.T) {
	before := "kind: List " + strings.Repeat("one two ", 200)
	after := "kind: List " + strings.Repeat("two three ", 200)
	left, right := Words(before, after)
	text := func(words []Word) string {
		var out strings.Builder
		for _, word := range words {
			out.WriteString(word.Text)
		}
		return out.String()
	}
	assert.Equal(t, before, text(left))
	assert.Equal(t, after, text(right))
	assert.Contains(t, marked(left), "kind: List [", "what lines begin with is the same, however long they are")
}
