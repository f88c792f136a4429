package command

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/definitions"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// What tests of commands have from a terminal by a shorter name.
var (
	now      = terminal.Now
	ago      = terminal.Ago
	inMemory = terminal.InMemory
	member   = terminal.Member
	leaseOf  = terminal.Lease
)

// console runs commands against a hub in memory and keeps what they print.
type console struct {
	*terminal.Console
	// lacking is what the definitions of the hub lack.
	lacking []definitions.Gap
}

// newConsole returns a console for a hub with these objects.
func newConsole(t *testing.T, objects ...client.Object) *console {
	t.Helper()
	return &console{Console: terminal.New(t, objects...)}
}

// run runs a command line and returns its error.
func (c *console) run(args ...string) error {
	c.T.Helper()
	return c.Run(NewRoot, args...)
}

// noHub answers as a cluster without the fleet's kinds.
func noHub(of client.WithWatch) client.WithWatch {
	unserved := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: placementv1beta1.GroupName, Kind: "Any"}}
	return interceptor.NewClient(of, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return unserved
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return unserved
		},
	})
}

// object reads an object from YAML.
func object[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
	return into
}
