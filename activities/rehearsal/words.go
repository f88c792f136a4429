package rehearsal

import (
	"regexp"
	"strings"
	"unicode"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// How much of what a member says is kept, in bytes.
const (
	maxMessage = 512
	maxName    = 512
	maxField   = 128
	maxFields  = 10
)

// harmless replaces what makes markup of words, for the places that show them as Markdown or HTML.
var harmless = strings.NewReplacer("<", "‹", ">", "›", "`", "'", "|", "¦")

// clean returns words of a member as they can be shown anywhere: in one line, without markup and without characters that command a
// terminal.
func clean(words string, most int) string {
	words = clusterv1beta1.FirstBytes(words, 4*most)
	words = strings.Join(strings.FieldsFunc(words, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	words = harmless.Replace(clusterv1beta1.Printable(words))
	return clusterv1beta1.CutText(words, most)
}

// numbers are what differs between the words of clusters about the same: counts, times, ports.
var numbers = regexp.MustCompile(`[0-9]+`)

// normalise returns the words by which clusters that say the same are one group: without their names and without numbers.
func normalise(words, cluster string) string {
	if cluster != "" {
		words = strings.ReplaceAll(words, cluster, "(cluster)")
	}
	return numbers.ReplaceAllString(words, "#")
}

// Clean returns words as a message of a rehearsal has them: harmless, and at most 512 bytes.
func Clean(words string) string { return clean(words, maxMessage) }
