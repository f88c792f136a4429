// Package boundaries proves who may import whom, through every chain of imports; the linter sees direct imports only.
// It also keeps what the documents say about the tree true.
package boundaries

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// goPackage is what `go list` says about a package of this module.
type goPackage struct {
	ImportPath string
	Deps       []string
}

// listPackages asks once for every package of the module and all it reaches. Packages that do not compile are listed
// too: their compiler says it better.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-e", "-tags=integration", "-deps", "-json=ImportPath,Deps", "./...")
	command.Dir = root
	stderr := &bytes.Buffer{}
	command.Stderr = stderr
	output, err := command.Output()
	require.NoError(t, err, stderr.String())
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		p := goPackage{}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		if isBelow(p.ImportPath, module) {
			packages = append(packages, p)
		}
	}
}

func TestImportsStayInsideTheirBorders(t *testing.T) {
	packages := listPackages(t)
	for sentence, rule := range rules() {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			for _, of := range rule.of {
				matched := 0
				for _, p := range packages {
					excepted := slices.ContainsFunc(rule.except, func(of string) bool { return matches(p.ImportPath, of) })
					if matches(p.ImportPath, of) && !excepted {
						matched++
						assert.Empty(t, rule.broken(p.Deps), "%s reaches these", p.ImportPath)
					}
				}
				assert.Positive(t, matched, "no package matches %s: the rule guards nothing", of)
			}
		})
	}
}

// broken returns the imports that the rule forbids.
func (r rule) broken(deps []string) []string {
	var found []string
	for _, dep := range deps {
		if anyBelow(dep, r.never) && !anyBelow(dep, r.but) {
			found = append(found, dep)
		}
	}
	return found
}

// matches says whether a pattern such as apis/... takes in an import path of this module.
func matches(importPath, pattern string) bool {
	folder, tree := strings.CutSuffix(pattern, "...")
	folder = strings.TrimSuffix(module+"/"+folder, "/")
	return importPath == folder || tree && isBelow(importPath, folder)
}

func isBelow(importPath, prefix string) bool {
	return importPath == prefix || strings.HasPrefix(importPath, prefix+"/")
}

func anyBelow(importPath string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if isBelow(importPath, prefix) {
			return true
		}
	}
	return false
}

func TestABrokenRuleIsSeen(t *testing.T) {
	r := rule{never: []string{"k8s.io/client-go", module + "/activities"}, but: []string{module + "/activities/snapshot"}}
	deps := []string{"fmt", "k8s.io/client-go-not", "k8s.io/client-go/rest", module + "/activities/snapshot", module + "/activities/worksync"}
	assert.Equal(t, []string{"k8s.io/client-go/rest", module + "/activities/worksync"}, r.broken(deps))
	assert.True(t, matches(module+"/apis/cluster", "apis/..."))
	assert.True(t, matches(module, "..."))
	assert.False(t, matches(module+"/apisx", "apis/..."))
	assert.False(t, matches(module+"/apis/cluster", "apis"))
}
