package contract

import (
	"strconv"
	"strings"
)

// Positions are places in a frozen list, ascending, written like "0-9,12". Workflows read and write them: the form never changes.
type Positions string

// PositionsOf writes down ascending positions.
func PositionsOf(positions []int) Positions {
	var b strings.Builder
	for i := 0; i < len(positions); {
		last := i
		for last+1 < len(positions) && positions[last+1] == positions[last]+1 {
			last++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(positions[i]))
		if last > i {
			b.WriteString("-" + strconv.Itoa(positions[last]))
		}
		i = last + 1
	}
	return Positions(b.String())
}

// Of returns the names at the positions; what is beyond the list has none.
func (p Positions) Of(list []string) []string {
	var names []string
	if p == "" {
		return nil
	}
	for part := range strings.SplitSeq(string(p), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil {
			continue
		}
		for i := max(0, first); i <= min(last, len(list)-1); i++ {
			names = append(names, list[i])
		}
	}
	return names
}
