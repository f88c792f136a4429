// Package version says of which version a program is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// number is that of a release; the linker sets it, see the Makefile and the Dockerfile.
var number string

// unknown is the version of a program of which nothing is known.
const unknown = "devel"

// Number returns the version, such as v0.1.0: that of the release, or else what Go knows of the commit.
func Number() string {
	info, _ := debug.ReadBuildInfo() // a program without it is of no known version
	return numberOf(number, info)
}

// IsRelease reports whether the version is that of a release, of which there are images.
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

// Label is the label that says of which version the agent is that holds a lease.
const Label = "app.kubernetes.io/version"

// Labels returns the labels of what an agent of this version holds.
func Labels() map[string]string { return map[string]string{Label: labelValue(Number())} }

// labelValue returns a version as a label can have it: Go's versions may have a +.
func labelValue(of string) string {
	value := strings.Map(func(r rune) rune {
		if r == '+' {
			return '-'
		}
		return r
	}, of)
	return strings.Trim(value[:min(len(value), validation.LabelValueMaxLength)], "-_.")
}

// Of returns what a program says when it is asked for its version: that and what it was made with and for.
func Of(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)", program, Number(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
