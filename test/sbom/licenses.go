package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/mod/module"
)

// standard names Go's own library among modules.
const standard = "std"

// sayings are what licenses say, and their names by SPDX. One that has all sentences of a row is of it.
var sayings = []struct {
	id   string
	says []string
	not  string
}{
	{id: "Apache-2.0", says: []string{"apache license", "version 2.0"}},
	{id: "MIT", says: []string{"permission is hereby granted, free of charge, to any person obtaining a copy of this software", "substantial portions"}},
	{id: "BSD-3-Clause", says: []string{"redistribution and use in source and binary forms", "endorse or promote products"}},
	{id: "BSD-2-Clause", says: []string{"redistribution and use in source and binary forms"}, not: "endorse or promote products"},
	{id: "ISC", says: []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted"}},
	{id: "MPL-2.0", says: []string{"mozilla public license", "2.0"}},
	{id: "Unlicense", says: []string{"this is free and unencumbered software released into the public domain"}},
}

// elsewhere are the licenses of modules that come without a file of theirs, as far as they are known from elsewhere.
var elsewhere = map[string][]string{
	// What it says above its package; the file is in the folder above that of the module.
	"github.com/cactus/go-statsd-client/statsd": {"MIT"},
	// The module says nothing.
	"github.com/nexus-rpc/nexus-proto-annotations": nil,
}

var spaces = regexp.MustCompile(`\s+`)

// licenseFile is how files with a license are named.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([.-].*)?$`)

// moduleCache is where Go keeps the modules that it has built programs of.
var moduleCache = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	return strings.TrimSpace(string(out)), err
})

// licensesOf returns the licenses of a module by SPDX, as its files say. A module of which none is known is an error.
func licensesOf(path, version string) ([]string, error) {
	if path == standard {
		return []string{"BSD-3-Clause"}, nil
	}
	if licenses, known := elsewhere[path]; known {
		return licenses, nil
	}
	cache, err := moduleCache()
	if err != nil {
		return nil, fmt.Errorf("asking Go where it keeps modules: %w", err)
	}
	escaped, err := module.EscapePath(path)
	if err != nil {
		return nil, fmt.Errorf("finding module %s: %w", path, err)
	}
	folder := filepath.Join(cache, filepath.FromSlash(escaped)+"@"+version)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading module %s, of which a program was built: %w", path, err)
	}
	found := map[string]bool{}
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the license of module %s: %w", path, err)
		}
		for _, id := range named(string(content)) {
			found[id] = true
		}
	}
	var all []string
	for _, s := range sayings {
		if found[s.id] {
			all = append(all, s.id)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no license of module %s %s is known; look at %s, and name it in test/sbom/licenses.go", path, version, folder)
	}
	return all, nil
}

// named returns the names of the licenses that a text has.
func named(text string) []string {
	text = spaces.ReplaceAllString(strings.ToLower(text), " ")
	var all []string
	for _, s := range sayings {
		has := s.not == "" || !strings.Contains(text, s.not)
		for _, sentence := range s.says {
			has = has && strings.Contains(text, sentence)
		}
		if has {
			all = append(all, s.id)
		}
	}
	return all
}
