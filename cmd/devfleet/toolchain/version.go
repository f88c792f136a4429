package toolchain

import (
	"fmt"
	"regexp"
	"strings"
)

// PinnedVersion reads the version a go.mod requires of a module. Only require lines count: a replace directive
// names versions of other modules.
func PinnedVersion(goMod, module string) (string, error) {
	inRequire := false
	for line := range strings.Lines(goMod) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "require ("):
			inRequire = true
			continue
		case line == ")":
			inRequire = false
			continue
		case strings.HasPrefix(line, "require "):
			line = strings.TrimPrefix(line, "require ")
		case !inRequire:
			continue
		}
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == module {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("no require line for module %s", module)
}

var versionPattern = regexp.MustCompile(`v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)`)

// ReportsVersion tells whether the output of a program's version command names the wanted version. The first
// version in the output counts: later ones are of the toolchain or of embedded parts.
func ReportsVersion(output, want string) bool {
	found := versionPattern.FindStringSubmatch(output)
	return found != nil && found[1] == withoutV(want)
}
