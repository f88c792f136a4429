package toolchain

import (
	"cmp"
	"fmt"
	"os"
)

// ProgramsEnv says where missing programs come from, for those who do not say it with a flag.
const ProgramsEnv = "FLEETFLOW_PROGRAMS"

// Programs is where programs come from that are missing.
type Programs string

// The places that missing programs come from.
const (
	// Auto downloads what its publisher has released, and builds what cannot be downloaded.
	Auto Programs = "auto"
	// Build asks no publisher, and does not take what was downloaded before.
	Build Programs = "build"
	// Download builds nothing, and fails where something cannot be downloaded.
	Download Programs = "download"
)

// ParsePrograms returns what a flag says, else what the environment says, else Auto.
func ParsePrograms(flag string) (Programs, error) {
	source := "--programs"
	value := flag
	if flag == "" {
		source = ProgramsEnv
		value = cmp.Or(os.Getenv(ProgramsEnv), string(Auto))
	}
	switch programs := Programs(value); programs {
	case Auto, Build, Download:
		return programs, nil
	}
	return "", fmt.Errorf("%s=%s is not known: it is auto, build or download", source, value)
}
