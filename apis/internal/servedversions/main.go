// Command servedversions gives the CRDs that controller-gen wrote the further versions that their kinds are served in,
// and, before it copies, the limits that no marker can give: of label selectors, times, quantities, and fields that
// can be numbers and strings.
//
// Every version has the schema, the columns and the subresources of the one version that has Go types, so writing
// through any of them loses nothing and no conversion is needed. Which versions a kind has is said above its Go type:
//
//	// +fleetflow:versions=v1,v1beta1
//
// Run it in the folder of the API types, after controller-gen: servedversions <folder of CRDs>...
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "servedversions:", err)
		os.Exit(1)
	}
}

// foreign begins the names of the files that hold definitions of SIG Multicluster, which stay as it publishes them.
const foreign = "multicluster.x-k8s.io_"

// run rewrites every CRD below the folders crds by what the types below the folder types say.
func run(types string, crds []string) error {
	served, err := readMarkers(types)
	if err != nil {
		return err
	}
	seen := map[kind]bool{}
	var problems []error
	for _, folder := range crds {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			return fmt.Errorf("listing CRDs: %w", err)
		}
		for _, file := range files {
			if strings.HasPrefix(filepath.Base(file), foreign) {
				continue
			}
			of, err := rewrite(file, served)
			seen[of] = true
			problems = append(problems, err)
		}
	}
	for of := range served {
		if !seen[of] {
			problems = append(problems, fmt.Errorf("%s has a marker %s but no CRD", of, marker))
		}
	}
	return errors.Join(problems...)
}

// rewrite gives one CRD its versions and returns the kind it defines.
func rewrite(file string, served map[kind][]string) (kind, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return kind{}, fmt.Errorf("reading a CRD: %w", err)
	}
	of, text, err := addVersions(text, served)
	if err != nil {
		return of, fmt.Errorf("%s: %w", file, err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return of, fmt.Errorf("writing a CRD: %w", err)
	}
	return of, nil
}
