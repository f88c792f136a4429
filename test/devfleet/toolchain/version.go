package toolchain

import (
	"fmt"
	"regexp"

	"golang.org/x/mod/modfile"
)

// PinnedVersion reads the version a go.mod requires of a module. Only require lines count: a replace directive
// names versions of other modules.
func PinnedVersion(goMod, module string) (string, error) {
	file, err := modfile.ParseLax("go.mod", []byte(goMod), nil)
	if err != nil {
		return "", fmt.Errorf("parsing it: %w", err)
	}
	for _, require := range file.Require {
		if require.Mod.Path == module {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("no require line for module %s", module)
}

var versionPattern = regexp.MustCompile(`v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)`)

// ReportsVersion reports whether the output of a program's version command names the wanted version. The first
// version in the output counts: later ones are of the toolchain or of embedded parts.
func ReportsVersion(output, want string) bool {
	found := versionPattern.FindStringSubmatch(output)
	return found != nil && found[1] == withoutV(want)
}
