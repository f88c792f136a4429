package imagepull

import (
	"regexp"
	"strings"
	"unicode"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// maxWords is how many bytes of what a registry or the API server says are told.
const maxWords = 256

// In addresses, credentials: users with passwords, and queries, which are signatures where registries have images in
// stores of objects.
var (
	userInfo = regexp.MustCompile(`://[^/@\s"']+@`)
	query    = regexp.MustCompile(`\?[^\s"']+`)
)

// harmless returns words of others as they are told: in one line, without credentials in addresses, and at most 256 bytes.
func harmless(words string) string {
	words = strings.ToValidUTF8(words, "")
	words = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, words)
	words = query.ReplaceAllString(userInfo.ReplaceAllString(words, "://"), "?…")
	words = strings.Trim(strings.Join(strings.Fields(words), " "), ": ")
	return clusterv1beta1.CutText(words, maxWords)
}
