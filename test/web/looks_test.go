package web

import (
	"image"
	"image/png"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// patch is how many pixels wide and high the parts of a picture are that are compared by how light they are on average: letters that
	// are drawn a little otherwise, and times that have gone on, hardly change that.
	patch = 16
	// lighter is by how much of 255 a patch may be lighter or darker.
	lighter = 14
	// mostOthers is how many of a hundred patches may be others.
	mostOthers = 6
	// widthOfLetters is how wide a line of the font is with which the pictures of the guide were taken: with another, all is elsewhere.
	widthOfLetters = 175.875
	// letters measures that.
	letters = "document.body.append(Object.assign(document.createElement('span'), {id: 'probe', textContent: 'fleetflow 0123456789'})), document.querySelector('#probe').getBoundingClientRect().width"
)

// lightness returns how light the patches of a picture are.
func lightness(picture image.Image) [][]int {
	size := picture.Bounds()
	var rows [][]int
	for top := size.Min.Y; top < size.Max.Y; top += patch {
		var row []int
		for left := size.Min.X; left < size.Max.X; left += patch {
			sum := 0
			count := 0
			for y := top; y < min(top+patch, size.Max.Y); y++ {
				for x := left; x < min(left+patch, size.Max.X); x++ {
					r, g, b, _ := picture.At(x, y).RGBA()
					sum += int(r+g+b) / 3 >> 8
					count++
				}
			}
			row = append(row, sum/count)
		}
		rows = append(rows, row)
	}
	return rows
}

// others returns how many of a hundred patches of two pictures are others; all of them if the pictures are not as large.
func others(a, b image.Image) float64 {
	if a.Bounds().Size() != b.Bounds().Size() {
		return 100
	}
	before := lightness(a)
	after := lightness(b)
	count := 0
	for y := range before {
		for x := range before[y] {
			if difference := before[y][x] - after[y][x]; difference > lighter || -difference > lighter {
				count++
			}
		}
	}
	return float64(count) * 100 / float64(len(before)*len(before[0]))
}

func TestPagesLookAsInTheGuide(t *testing.T) {
	probe := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	probe.open("/me")
	if width := ask[float64](probe, letters); width != widthOfLetters {
		t.Skipf("the font of this machine is another than that of the pictures of the guide: a line is %v wide, not %v", width, widthOfLetters)
	}
	shoot(t, func(s shot, x *tab) {
		if s.name == "hub-away" || s.name == "history" {
			return // the one says which watch has ended first, in one line or in two; the axis of the other begins at a whole half hour
		}
		file, err := os.Open(pictureOf(s))
		require.NoError(t, err)
		defer file.Close()
		guide, err := png.Decode(file)
		require.NoError(t, err)
		found := others(guide, x.look())
		t.Logf("%s: %.1f %% of it is another", s.name, found)
		assert.LessOrEqual(t, found, float64(mostOthers), "%s looks otherwise: look at it, and if it should, take the pictures anew with make pictures", s.name)
		if s.name == "fleet" {
			ask[bool](x, "document.querySelector('link[rel=stylesheet]').remove(), true")
			assert.Greater(t, others(guide, x.look()), float64(mostOthers), "a page without its style looks otherwise")
		}
	})
}
