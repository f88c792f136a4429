// Command apireference writes the reference of the API from the CRDs, which know more than the Go types: versions,
// defaults, limits and the messages of rules. Run it after everything that changes CRDs:
//
//	apireference <file to write> <folder of CRDs>...
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: apireference <file to write> <folder of CRDs>...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "apireference:", err)
		os.Exit(1)
	}
}

// run writes the reference of the CRDs in some folders to a file.
func run(target string, folders []string) error {
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.kubernetes-fleet.io_*.yaml"))
		if err != nil {
			return fmt.Errorf("listing CRDs: %w", err)
		}
		for _, file := range files {
			crd, err := read(file)
			if err != nil {
				return err
			}
			crds[crd.Spec.Names.Kind] = crd
		}
	}
	kinds, err := arrange(crds)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	newReference(kinds).write(&text)
	if err := os.WriteFile(target, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the reference: %w", err)
	}
	return nil
}

func read(file string) (*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a CRD: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", file, err)
	}
	return crd, nil
}
