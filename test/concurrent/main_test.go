package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConcurrencyIsSeenInTheCode(t *testing.T) {
	for sentence, test := range map[string]struct {
		code string
		want bool
	}{
		"a function that only computes":                {"func f() int { return 1 }", false},
		"a library that calls nothing back":            {`import _ "k8s.io/client-go/tools/clientcmd"`, false},
		"a lock that only one goroutine takes":         {`import "sync"; var l sync.Mutex`, false},
		"a library whose name begins like one":         {`import _ "golang.org/x/syncer"`, false},
		"a goroutine":                                  {"func f() { go f() }", true},
		"events, which are written later":              {`import _ "k8s.io/client-go/tools/events"`, true},
		"a group of goroutines":                        {"func f(g group) { g.Go(f) }", true},
		"a function that is called later":              {`import "time"; func f() { time.AfterFunc(1, f) }`, true},
		"a test beside others":                         {`import "testing"; func f(t *testing.T) { t.Parallel() }`, true},
		"a server whose handlers run by themselves":    {`import _ "net/http/httptest"`, true},
		"a workflow":                                   {`import _ "go.temporal.io/sdk/testsuite"`, true},
		"a controller":                                 {`import _ "sigs.k8s.io/controller-runtime/pkg/builder"`, true},
		"an informer, which calls its handlers itself": {`import _ "k8s.io/client-go/tools/cache"`, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+test.code, parser.SkipObjectResolution)
			require.NoError(t, err)
			assert.Equal(t, test.want, isConcurrent(file))
		})
	}
}

func TestAPackageIsConcurrentWithWhatItReaches(t *testing.T) {
	dir := t.TempDir()
	for name, code := range map[string]string{"pure.go": "package p", "goes.go": "package p; func f() { go f() }"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600))
	}
	pure := []string{"pure.go"}
	goes := []string{"goes.go"}
	found, err := concurrentPackages([]goPackage{
		{ImportPath: "low", Dir: dir, GoFiles: goes},
		{ImportPath: "middle", Dir: dir, GoFiles: pure, Imports: []string{"fmt", "low"}},
		{ImportPath: "high", Dir: dir, GoFiles: pure, Imports: []string{"middle"}},
		{ImportPath: "tested", Dir: dir, GoFiles: pure, XTestImports: []string{"middle"}},
		{ImportPath: "tests", Dir: dir, GoFiles: pure, TestGoFiles: goes},
		{ImportPath: "imports-tests", Dir: dir, GoFiles: pure, Imports: []string{"tests"}},
		{ImportPath: "pure", Dir: dir, GoFiles: pure, Imports: []string{"fmt"}, TestGoFiles: pure},
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{
		"low": true, "middle": true, "high": true, "tested": true, "tests": true, "imports-tests": false, "pure": false,
	}, found, "tests of a package are not reached by importing it")
}

func TestAFileThatDoesNotParseIsNoPureOne(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.go"), []byte("package"), 0o600))
	_, err := concurrentPackages([]goPackage{{ImportPath: "broken", Dir: dir, GoFiles: []string{"broken.go"}}})
	assert.ErrorContains(t, err, "broken.go")
}
