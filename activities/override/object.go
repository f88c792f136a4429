package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Object is an object of the hub, ready to be patched for any number of clusters, also at
// the same time.
type Object struct {
	manifest []byte
	root     *node
	id       resource
}

// NewObject reads an object from its manifest, which must not change afterwards. What comes
// without its namespace, as the content of an envelope can, has to be given it before.
func NewObject(manifest []byte) (*Object, error) {
	if !json.Valid(manifest) {
		return nil, errors.New("the manifest is no valid JSON")
	}
	root := newNode(bytes.TrimSpace(manifest))
	fields := root.splitContent()
	if fields.shape != shapeObject {
		return nil, errors.New("the manifest is no JSON object")
	}
	version := fields.findField("apiVersion").asString()
	kind := fields.findField("kind").asString()
	var name, namespace string
	if metadata := fields.findField("metadata"); metadata != nil {
		name = metadata.splitContent().findField("name").asString()
		namespace = metadata.splitContent().findField("namespace").asString()
	}
	if version == "" || kind == "" || name == "" {
		return nil, fmt.Errorf("the manifest has apiVersion %q, kind %q and metadata.name %q, and all of them have to be set", version,
			kind, name)
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, fmt.Errorf("the apiVersion of %s %s: %w", kind, name, err)
	}
	return &Object{
		manifest: manifest, root: root,
		id: resource{objectKey: objectKey{group: gv.Group, kind: kind, namespace: namespace, name: name}, version: gv.Version},
	}, nil
}

// Identifier returns which object it is.
func (o *Object) Identifier() placementv1beta1.ResourceIdentifier { return o.id.toIdentifier() }
