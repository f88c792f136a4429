package command

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// TestScripts plays the sessions of testdata/scripts, at a time that stands still. Besides the commands of testscript, a script has
//
//	hub FILE...         a hub with the objects of these files, in place of the one before
//	fleet ARGUMENT...   kubectl fleet; ! before it says that it fails
//	exits CODE          what the last one has exited with
//	object KIND NAME    prints an object of the hub
//
// UPDATE_GOLDEN=1 writes what cmp compares with into the scripts.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:             "testdata/scripts",
		UpdateScripts:   os.Getenv("UPDATE_GOLDEN") != "",
		ContinueOnError: true,
		Setup: func(env *testscript.Env) error {
			env.Values[played{}] = &played{console: newConsole(t)}
			return nil
		},
		Cmds: map[string]func(script *testscript.TestScript, negated bool, args []string){
			"hub":    startHub,
			"fleet":  runFleet,
			"exits":  checkExit,
			"object": printObject,
		},
	})
}

// played is what a script works with: its hub, and what the last command has exited with.
type played struct {
	console *console
	code    int
}

func playedOf(script *testscript.TestScript) *played {
	return script.Value(played{}).(*played)
}

// startHub implements hub.
func startHub(script *testscript.TestScript, _ bool, files []string) {
	var objects []client.Object
	for _, file := range files {
		found, err := objectsIn([]byte(script.ReadFile(file)))
		if err != nil {
			script.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, found...)
	}
	playedOf(script).console.Hub = inMemory(objects...)
}

// objectsIn reads the objects of a file, and refuses fields that their kinds do not have.
func objectsIn(text []byte) ([]client.Object, error) {
	decoder := serializer.NewCodecFactory(cli.Scheme(), serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var objects []client.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object.(client.Object))
	}
}

// runFleet implements fleet.
func runFleet(script *testscript.TestScript, negated bool, args []string) {
	of := playedOf(script)
	for i, arg := range args {
		if _, err := os.Stat(script.MkAbs(arg)); err == nil {
			args[i] = script.MkAbs(arg)
		}
	}
	err := of.console.run(args...)
	var errOut bytes.Buffer
	_, _ = of.console.Err.WriteTo(&errOut)
	of.code = cli.Report(&errOut, err, false)
	_, _ = of.console.Out.WriteTo(script.Stdout())
	_, _ = errOut.WriteTo(script.Stderr())
	if (of.code != 0) != negated {
		script.Fatalf("it has exited with %d: %v", of.code, err)
	}
}

// checkExit implements exits.
func checkExit(script *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(playedOf(script).code); len(args) != 1 || args[0] != got {
		script.Fatalf("it has exited with %s", got)
	}
}

// printObject implements object.
func printObject(script *testscript.TestScript, negated bool, args []string) {
	if len(args) != 2 {
		script.Fatalf("usage: object KIND NAME")
	}
	of := playedOf(script)
	object := newOf(of.console.Hub.Scheme(), args[0])
	if object == nil {
		script.Fatalf("there is no kind %s", args[0])
	}
	err := of.console.Hub.Get(of.console.T.Context(), client.ObjectKey{Name: args[1]}, object)
	if (err != nil) != negated {
		script.Fatalf("reading it: %v", err)
	}
	if err == nil {
		object.SetResourceVersion("")
		text, err := sigsyaml.Marshal(object)
		script.Check(err)
		_, _ = script.Stdout().Write(text)
	}
}

// newOf returns an empty object of a kind; nil if no API has it.
func newOf(scheme *runtime.Scheme, kind string) client.Object {
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Kind == kind {
			if object, err := scheme.New(gvk); err == nil {
				return object.(client.Object)
			}
		}
	}
	return nil
}
