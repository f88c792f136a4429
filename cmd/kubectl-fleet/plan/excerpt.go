package plan

import (
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
)

// Excerpt is as much of a plan as a page can show, with what changes counted.
type Excerpt struct {
	Plan
	Hash                    string
	Added, Changed, Removed int
	Groups                  []GroupExcerpt
}

// GroupExcerpt is what changes for clusters with the same changes.
type GroupExcerpt struct {
	Group
	Named string
	Shown []ObjectExcerpt
}

// ObjectExcerpt is what changes of an object.
type ObjectExcerpt struct {
	Object, Change string
	Blocks         []Block
	// More is how many lines are left out; New says that all of the object is new there.
	More int
	New  bool
}

// Block are lines of a difference that follow one another: Swap are those that go, and those that come in their place. Where there is
// room for it, these stand side by side.
type Block struct {
	Swap  bool
	Lines []Line
}

// Line is a line of a difference, and what it does. Of a line that comes in the place of another, the words that differ stand out.
type Line struct {
	Class string
	Words []objectdiff.Word
}

// blocksOf returns the lines of a difference as pages show them.
func blocksOf(lines []string) (blocks []Block) {
	for _, line := range lines {
		swap := line[0] == '+' || line[0] == '-'
		if len(blocks) == 0 || blocks[len(blocks)-1].Swap != swap {
			blocks = append(blocks, Block{Swap: swap})
		}
		last := &blocks[len(blocks)-1]
		last.Lines = append(last.Lines, Line{map[byte]string{'+': "added", '-': "removed", '@': "place"}[line[0]], []objectdiff.Word{{Text: line}}})
	}
	for _, block := range blocks {
		if block.Swap {
			compareWords(block.Lines)
		}
	}
	return blocks
}

// compareWords has the words stand out by which lines that go differ from those that come in their place: the next one of the same field.
func compareWords(lines []Line) {
	taken := map[int]bool{}
	for i := range lines {
		gone := &lines[i]
		if gone.Class != "removed" {
			continue
		}
		for j := range lines {
			come := &lines[j]
			if come.Class != "added" || taken[j] || fieldOf(gone.Words[0].Text) != fieldOf(come.Words[0].Text) {
				continue
			}
			taken[j] = true
			left, right := objectdiff.Words(gone.Words[0].Text[1:], come.Words[0].Text[1:])
			gone.Words = append([]objectdiff.Word{{Text: "-"}}, left...)
			come.Words = append([]objectdiff.Word{{Text: "+"}}, right...)
			break
		}
	}
}

// fieldOf returns what a line of a difference begins with, up to its value.
func fieldOf(line string) string {
	field, _, _ := strings.Cut(line[1:], ": ")
	return field
}

// maxLines is how many lines of the difference of an object are shown, and maxAllLines of all together.
const (
	maxLines    = 200
	maxAllLines = 2000
)

// Excerpt returns as much of the plan as a page can show; hash names the plan.
func (p Plan) Excerpt(hash string) *Excerpt {
	view := &Excerpt{Plan: p, Hash: hash}
	left := maxAllLines
	for _, group := range p.Changes {
		shown := GroupExcerpt{Group: group, Named: updaterun.ListNames(group.Clusters)}
		for _, object := range group.Objects {
			switch object.Change {
			case "added":
				view.Added++
			case "removed":
				view.Removed++
			default:
				view.Changed++
			}
			one := ObjectExcerpt{Object: object.Object, Change: object.Change, New: object.Change == "added" && group.From == ""}
			number := min(len(object.Lines), maxLines, left)
			if one.New {
				number = 0
			}
			left -= number
			one.More = len(object.Lines) - number
			one.Blocks = blocksOf(object.Lines[:number])
			shown.Shown = append(shown.Shown, one)
		}
		view.Groups = append(view.Groups, shown)
	}
	return view
}

// Wave is a wave of a plan, with what keeps it from beginning at once.
type Wave struct {
	Stage    string
	Number   int
	Opens    *time.Time
	For      string
	Clusters string
}

// Waves returns the waves of all stages.
func (p Plan) Waves() []Wave {
	var all []Wave
	for _, stage := range p.Stages {
		for i, wave := range stage.Waves {
			row := Wave{Stage: stage.Name, Number: i + 1}
			for _, opening := range stage.Openings {
				if opening.Wave == row.Number {
					row.Opens = opening.Opens
					row.For = opening.For
				}
			}
			var names []string
			for _, cluster := range wave {
				names = append(names, cluster.Name)
			}
			row.Clusters = updaterun.ListNames(names)
			all = append(all, row)
		}
	}
	return all
}
