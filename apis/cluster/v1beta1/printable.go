package v1beta1

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text as it can be shown on a terminal: control characters, of which a terminal makes commands, and
// those that turn the direction of writing are spelled out. Line ends and tabs stay. Messages are written by users and by
// members: without this a member could redraw what the user sees before an approval, also with kubectl, which shows events as they are.
func Printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, isCommand) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if !isCommand(r) {
			out.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return out.String()
}

// isCommand reports whether a terminal would act on a character instead of showing it.
func isCommand(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069': // embeddings, overrides and isolates
		return true
	default:
		return unicode.IsControl(r)
	}
}

// CutText cuts a text that takes more than that many bytes, and shows that it did.
func CutText(text string, most int) string {
	const more = "…"
	if len(text) <= most {
		return text
	}
	return FirstBytes(text, most-len(more)) + more
}

// FirstBytes returns as much of a text as takes no more than that many bytes. What is cut of a character is left out.
func FirstBytes(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
