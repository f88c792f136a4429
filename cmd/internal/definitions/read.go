package definitions

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Reader asks a hub for its schemas, which every user may read who may ask what a cluster serves.
type Reader struct {
	Client rest.Interface
	Scheme *runtime.Scheme

	// seen is where the schemas of a version are, by which the hub says that they have changed; schemas are those.
	seen    map[schema.GroupVersion]string
	schemas map[schema.GroupVersionKind]*Schema
}

// Lacking returns what the definitions of the hub lack. It reads only the schemas that have changed since it was asked before.
func (r *Reader) Lacking(ctx context.Context) ([]Gap, error) {
	index := struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}{}
	if err := r.read(ctx, "/openapi/v3", &index); err != nil {
		return nil, err
	}
	if r.seen == nil {
		r.seen = map[schema.GroupVersion]string{}
		r.schemas = map[schema.GroupVersionKind]*Schema{}
	}
	for _, version := range Versions {
		url := index.Paths["apis/"+version.String()].URL
		if url == r.seen[version] {
			continue
		}
		if err := r.readVersion(ctx, version, url); err != nil {
			return nil, err
		}
		r.seen[version] = url
	}
	return Lacking(r.Scheme, r.schemas), nil
}

// readVersion reads the schemas of a version, which has none where the hub does not serve it.
func (r *Reader) readVersion(ctx context.Context, version schema.GroupVersion, url string) error {
	document := struct {
		Components struct {
			Schemas map[string]*Schema `json:"schemas"`
		} `json:"components"`
	}{}
	if url != "" {
		if err := r.read(ctx, url, &document); err != nil {
			return err
		}
	}
	for kind := range r.schemas {
		if kind.GroupVersion() == version {
			delete(r.schemas, kind)
		}
	}
	for _, found := range document.Components.Schemas {
		for _, kind := range found.Kinds {
			if kind.GroupVersion() == version {
				r.schemas[kind] = found
			}
		}
	}
	return nil
}

func (r *Reader) read(ctx context.Context, url string, into any) error {
	content, err := r.Client.Get().RequestURI(url).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("reading the schemas that the hub has: %w", err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("reading the schemas that the hub has at %s: %w", url, err)
	}
	return nil
}
