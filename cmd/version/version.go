// Package version says of which version a program is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// number is that of a release; the linker sets it, see the Makefile and the Dockerfile.
var number string

// unknown is the version of a program of which nothing is known.
const unknown = "devel"

// Number is the version, such as v0.1.0: that of the release, or else what Go knows of the commit.
func Number() string {
	info, _ := debug.ReadBuildInfo() // a program without it is of no known version
	return numberOf(number, info)
}

// IsRelease says whether the version is that of a release, of which there are images.
func IsRelease() bool {
	return number != "" && !strings.Contains(number, "-g") && !strings.Contains(number, "dirty") && strings.HasPrefix(number, "v")
}

func numberOf(stamped string, info *debug.BuildInfo) string {
	switch {
	case stamped != "":
		return stamped
	case info == nil || info.Main.Version == "" || info.Main.Version == "(devel)":
		return unknown
	}
	return info.Main.Version
}

// Of is what a program says when it is asked for its version: that and what it was made with and for.
func Of(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)", program, Number(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
