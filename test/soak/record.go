package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const registry = "/registry/"

// recorder keeps every write to the hub's store, in the store's own order. It watches etcd and not the API server: that is
// killed in a soak, and remembers no writes from before.
type recorder struct {
	etcd   *clientv3.Client
	bundle *bundle
	cancel context.CancelFunc
	ended  chan error
}

// record begins with what is stored now.
func record(ctx context.Context, address string, b *bundle) (*recorder, error) {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub's etcd: %w", err)
	}
	stored, err := etcd.Get(ctx, registry, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading the hub's etcd: %w", err)
	}
	r := &recorder{etcd: etcd, bundle: b, ended: make(chan error, 1)}
	for _, kv := range stored.Kvs {
		if err := r.keep(kv.ModRevision, string(kv.Key), kv.Value, false); err != nil {
			return nil, err
		}
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what comes after an interruption is recorded, too
	r.cancel = cancel
	news := etcd.Watch(clientv3.WithRequireLeader(watching), registry, clientv3.WithPrefix(), clientv3.WithPrevKV(),
		clientv3.WithRev(stored.Header.Revision+1))
	go func() { r.ended <- r.follow(watching, news) }()
	return r, nil
}

// follow keeps what the watch shows until it is told to end.
func (r *recorder) follow(ctx context.Context, news clientv3.WatchChan) error {
	for answer := range news {
		if err := answer.Err(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watching the hub's etcd, so that not every write was seen: %w", err)
		}
		for _, event := range answer.Events {
			gone := event.Type == clientv3.EventTypeDelete
			value := event.Kv.Value
			if gone && event.PrevKv != nil {
				value = event.PrevKv.Value
			}
			if err := r.keep(event.Kv.ModRevision, string(event.Kv.Key), value, gone); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the watch of the hub's etcd has ended")
}

// keep writes one write to the bundle if it is of a kind that is judged.
func (r *recorder) keep(revision int64, key string, value []byte, gone bool) error {
	path := strings.Split(strings.TrimPrefix(key, registry), "/")
	if len(path) < 3 || kinds[path[1]] == nil || !strings.Contains(path[0], ".") {
		return nil
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(value, &object.Object); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	object.SetManagedFields(nil)
	text, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return r.bundle.addWrite(write{Revision: revision, At: time.Now().UTC(), Resource: path[1], Gone: gone, Object: text})
}

// stop ends the recording and says whether it saw every write.
func (r *recorder) stop() error {
	r.cancel()
	err := <-r.ended
	_ = r.etcd.Close() // nothing is asked of it any more
	return err
}
