// Package version says of which version a program is.
package version

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
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

// Build names the code of this program among others: the version of a release, and otherwise also a sum of the program's bytes, as
// two builds of one commit may differ.
func Build() (string, error) {
	if IsRelease() {
		return Number(), nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program that runs: %w", err)
	}
	program, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("opening the program that runs: %w", err)
	}
	defer func() { _ = program.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, program); err != nil {
		return "", fmt.Errorf("reading the program that runs: %w", err)
	}
	return Number() + "-" + hex.EncodeToString(sum.Sum(nil))[:sumLength], nil
}

// sumLength is how much of a sum tells two builds apart.
const sumLength = 12

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
