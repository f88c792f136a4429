package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// marker is the comment above a Go type that names the versions its kind is served in.
	marker = "+fleetflow:versions="
	// stored is the version that has Go types and that objects are stored in.
	stored = "v1beta1"
)

// kind names a kind by the folder of its types, which is the first label of its group, and its Go type.
type kind struct {
	group, name string
}

// String returns the kind as its group and its name.
func (k kind) String() string { return k.group + " " + k.name }

// readMarkers returns the versions of every kind whose Go type, in <folder>/<group>/v1beta1, names them.
func readMarkers(folder string) (map[kind][]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", stored, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("listing types: %w", err)
	}
	served := map[kind][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading types: %w", err)
		}
		group := filepath.Base(filepath.Dir(filepath.Dir(file)))
		for _, declaration := range parsed.Decls {
			name, versions := markedType(declaration)
			if versions == nil {
				continue
			}
			if err := checkVersions(versions); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, name, err)
			}
			served[kind{group, name}] = versions
		}
	}
	return served, nil
}

// markedType returns the name of a type and the versions in the comment above it, no versions for anything else.
func markedType(declaration ast.Decl) (name string, versions []string) {
	general, ok := declaration.(*ast.GenDecl)
	if !ok || general.Tok != token.TYPE || general.Doc == nil {
		return "", nil
	}
	for _, comment := range general.Doc.List {
		if _, list, found := strings.Cut(comment.Text, marker); found {
			return general.Specs[0].(*ast.TypeSpec).Name.Name, strings.Split(strings.TrimSpace(list), ",")
		}
	}
	return "", nil
}

// checkVersions refuses versions that are not in the order in which Kubernetes prefers them, so that every list of
// versions reads alike, and a list that lacks the stored version.
func checkVersions(versions []string) error {
	known := []string{"v1", stored, "v1alpha1"}
	last := -1
	for _, version := range versions {
		place := slices.Index(known, version)
		if place <= last {
			return fmt.Errorf("versions are some of %s, in this order, but the marker says %s", strings.Join(known, ","), strings.Join(versions, ","))
		}
		last = place
	}
	if !slices.Contains(versions, stored) {
		return fmt.Errorf("%s is the stored version and must be served, but the marker says %s", stored, strings.Join(versions, ","))
	}
	return nil
}
