package objectdiff

import (
	"regexp"
	"slices"
	"strings"
)

// Word is a part of a line of text. Changed says that the other line does not have it there.
type Word struct {
	Text    string
	Changed bool
}

// wordInLine finds what is compared as one: names and versions, spaces, and each other sign.
var wordInLine = regexp.MustCompile(`[\pL\pN._-]+|\s+|.`)

// maxPairs is how many pairs of words are compared: of longer lines only what they begin and end with is the same.
const maxPairs = 40000

// Words compares two lines and tells which words of each the other does not have. Of lines that have no name in common, nothing stands out.
func Words(before, after string) (left, right []Word) {
	a := wordInLine.FindAllString(before, -1)
	b := wordInLine.FindAllString(after, -1)
	inA, inB := commonWords(a, b)
	if !haveNames(a, inA) {
		return joinWords(a, nil), joinWords(b, nil)
	}
	return joinWords(a, inA), joinWords(b, inB)
}

// commonWords tells which words of two lines are in both, in the same order.
func commonWords(a, b []string) (inA, inB []bool) {
	inA = make([]bool, len(a))
	inB = make([]bool, len(b))
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		inA[first] = true
		inB[first] = true
		first++
	}
	endA := len(a)
	endB := len(b)
	for endA > first && endB > first && a[endA-1] == b[endB-1] {
		endA--
		endB--
		inA[endA] = true
		inB[endB] = true
	}
	if (endA-first)*(endB-first) <= maxPairs {
		longestCommon(a[first:endA], b[first:endB], inA[first:endA], inB[first:endB])
	}
	return inA, inB
}

// longestCommon marks the longest sequence of words that both have.
func longestCommon(a, b []string, inA, inB []bool) {
	lengths := make([][]int, len(a)+1)
	for i := range lengths {
		lengths[i] = make([]int, len(b)+1)
	}
	for i, left := range slices.Backward(a) {
		for j, right := range slices.Backward(b) {
			lengths[i][j] = max(lengths[i+1][j], lengths[i][j+1])
			if left == right {
				lengths[i][j] = lengths[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			inA[i] = true
			inB[j] = true
			i++
			j++
		case lengths[i+1][j] >= lengths[i][j+1]:
			i++
		default:
			j++
		}
	}
}

// haveNames reports whether what two lines have in common is more than spaces and signs.
func haveNames(words []string, common []bool) bool {
	for i, word := range words {
		if common[i] && strings.ContainsFunc(word, isOfName) {
			return true
		}
	}
	return false
}

func isOfName(r rune) bool {
	return r > 0x7f || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// joinWords puts words together that stand out, or do not, one after the other. Without what is common, none stands out.
func joinWords(words []string, common []bool) []Word {
	var joined []Word
	for i, word := range words {
		changed := common != nil && !common[i]
		if last := len(joined) - 1; last >= 0 && joined[last].Changed == changed {
			joined[last].Text += word
			continue
		}
		joined = append(joined, Word{word, changed})
	}
	return joined
}
