package cli

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Reader returns what reads from the hub without asking it first for all kinds that it serves: where members, placements and
// runs are is known. A kind that the hub does not serve is answered with not found, of no object.
func (f *Factory) Reader() (client.Reader, error) {
	if f.Connect != nil {
		return f.Client()
	}
	config, err := f.Configure("")
	if err != nil {
		return nil, err
	}
	reader, err := newFleetReader(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return reader, nil
}

// fleetReader reads with known kinds, and asks which there are only if that makes a difference.
type fleetReader struct {
	client.Reader
	discovering client.Reader
}

func newFleetReader(config *rest.Config) (client.Reader, error) {
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	discovering, err := apiutil.NewDynamicRESTMapper(config, connection)
	if err != nil {
		return nil, err
	}
	options := client.Options{Scheme: Scheme(), HTTPClient: connection, Mapper: discovering}
	slow, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	options.Mapper = knownKinds{RESTMapper: discovering, known: mapFleetKinds()}
	fast, err := client.New(config, options)
	return fleetReader{Reader: fast, discovering: slow}, err
}

// List reads a list. Whether the user may not read a kind, or the hub does not serve it, the API server does not tell apart for users
// without rights on all kinds.
func (r fleetReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	if _, everywhere := list.(*coordinationv1.LeaseList); apierrors.IsForbidden(err) && !everywhere {
		return r.discovering.List(ctx, list, options...)
	}
	return err
}

// knownKinds maps kinds that are known without a request, and asks for others.
type knownKinds struct {
	meta.RESTMapper
	known meta.RESTMapper
}

// RESTMapping finds where a kind is served.
func (k knownKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if mapping, err := k.known.RESTMapping(kind, versions...); err == nil {
		return mapping, nil
	}
	return k.RESTMapper.RESTMapping(kind, versions...)
}

// mapFleetKinds knows members, placements and runs, which `kubectl fleet get` shows, and the leases of agents that keep them up to date.
func mapFleetKinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(clusterv1beta1.GroupVersion.WithKind("MemberCluster"), meta.RESTScopeRoot)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	for _, kindOf := range []func(placementv1beta1.Scope) schema.GroupVersionKind{placementv1beta1.Scope.PlacementKind,
		placementv1beta1.Scope.UpdateRunKind} {
		mapper.Add(kindOf(placementv1beta1.Scope{}), meta.RESTScopeRoot)
		mapper.Add(kindOf(placementv1beta1.AnyNamespace), meta.RESTScopeNamespace)
	}
	return mapper
}
