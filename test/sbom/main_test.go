package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
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
	d := billOf("p", "sum", &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0+incompatible"},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}},
	}})
	assert.Equal(t, "pkg:golang/std@go1.26.8", d.Components[0].PURL)
	assert.Equal(t, "pkg:golang/example.com/a@v1.0.0+incompatible", d.Components[1].PURL)
	assert.Equal(t, "example.com/c", d.Components[2].Name)
}
