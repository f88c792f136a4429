package v1beta1

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestATextIsCutBetweenCharacters(t *testing.T) {
	const text = "grün" // ü takes two bytes
	for most, want := range map[int]string{0: "", 2: "gr", 3: "gr", 4: "grü", 5: text, 9: text} {
		assert.Equal(t, want, FirstBytes(text, most), most)
	}
	assert.Equal(t, text, CutText(text, len(text)))
	assert.Equal(t, "gr…", CutText("grüner", 6), "it takes no more than that, with the sign")
}
