package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test is a program, too. Go notes no modules in tests, so those are looked at below.
func TestTheBillOfAProgramIsBesideIt(t *testing.T) {
	content, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, content, 0o600))
	require.NoError(t, write(program, "v1.2.3"))
	bill, err := os.ReadFile(program + ".cdx.json")
	require.NoError(t, err)
	var d document
	require.NoError(t, json.Unmarshal(bill, &d))
	assert.Equal(t, "CycloneDX", d.Format)
	assert.Len(t, d.Metadata.Component.Hashes[0].Content, 64)
	assert.Equal(t, "v1.2.3", d.Metadata.Component.Version)
	assert.Equal(t, runtime.Version(), d.Components[0].Version)
	assert.Len(t, d.Dependencies[0].DependsOn, len(d.Components))
	assert.ErrorContains(t, write(filepath.Join(t.TempDir(), "nothing"), ""), "reading what")
}

func TestAModuleThatWasReplacedIsNamedByWhatReplacedIt(t *testing.T) {
	d, err := billOf("p", "sum", &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0+incompatible"},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}},
		{Path: "example.com/d", Version: "v1.0.0", Replace: &debug.Module{Path: "./absent/d"}},
	}}, func(string, string) ([]string, error) { return []string{"MIT"}, nil })
	require.NoError(t, err)
	require.Len(t, d.Components, 3, "what a folder replaces is not linked")
	assert.Equal(t, "MIT", d.Components[1].Licenses[0].License.ID)
	assert.Equal(t, "pkg:golang/std@go1.26.8", d.Components[0].PURL)
	assert.Equal(t, "pkg:golang/example.com/a@v1.0.0+incompatible", d.Components[1].PURL)
	assert.Equal(t, "example.com/c", d.Components[2].Name)
}

// What programs are linked with may be passed on, in their images, without the sources of what is ours.
func TestEveryModuleOfTheProgramsHasALicenseThatIsKnown(t *testing.T) {
	const modules = "{{with .Module}}{{if not .Main}}{{with .Replace}}{{.Path}} {{.Version}}{{else}}{{.Path}} {{.Version}}{{end}}{{end}}{{end}}"
	for folder, pattern := range map[string]string{"../..": "./cmd/...", "../controlplane": "github.com/temporalio/cli/cmd/temporal"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", modules, pattern)
		list.Dir = folder
		out, err := list.Output()
		require.NoError(t, err)
		seen := map[string]bool{}
		for line := range strings.Lines(string(out)) {
			path, version, both := strings.Cut(strings.TrimSpace(line), " ")
			if !both || version == "" || strings.HasPrefix(path, ".") || seen[path] {
				continue
			}
			seen[path] = true
			_, err := licensesOf(path, version)
			assert.NoError(t, err)
		}
		assert.Greater(t, len(seen), 30, pattern)
	}
}

func TestLicensesAreKnownByWhatTheySay(t *testing.T) {
	assert.Equal(t, []string{"MIT"}, named("Permission is hereby granted, free of charge,\n  to any person obtaining a copy of this software … substantial portions"))
	assert.Equal(t, []string{"BSD-2-Clause"}, named("Redistribution and use in source and binary forms"))
	assert.Empty(t, named("All rights reserved."))
}
