package worksync

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/workmodel"
)

// keptContents has the contents of the snapshots that were asked for last, by the uid of their
// masters: as many as fit, in number and in bytes, but always the last one. The LRU caches of
// k8s.io/utils and hashicorp/golang-lru bound their number only, and the latter with a count
// of bytes around it saves 25 lines for one more module; otter bounds weights, but drops at
// once what is heavier than all of its room.
type keptContents struct {
	most, mostBytes int

	mu    sync.Mutex
	bytes int
	all   map[types.UID]*list.Element
	order *list.List // of *keptContent, the one asked for last in front
}

type keptContent struct {
	uid     types.UID
	content *workmodel.Content
	bytes   int
}

func newKept(most, mostBytes int) *keptContents {
	return &keptContents{most: most, mostBytes: mostBytes, all: map[types.UID]*list.Element{}, order: list.New()}
}

func (k *keptContents) contentOf(uid types.UID) (*workmodel.Content, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	element, ok := k.all[uid]
	if !ok {
		return nil, false
	}
	k.order.MoveToFront(element)
	return element.Value.(*keptContent).content, true
}

func (k *keptContents) addContent(uid types.UID, content *workmodel.Content) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.all[uid]; ok {
		k.dropElement(known)
	}
	entry := &keptContent{uid: uid, content: content, bytes: contentSize(content)}
	k.all[uid] = k.order.PushFront(entry)
	k.bytes += entry.bytes
	for k.order.Len() > 1 && (k.order.Len() > k.most || k.bytes > k.mostBytes) {
		k.dropElement(k.order.Back())
	}
}

func (k *keptContents) dropElement(element *list.Element) {
	entry := k.order.Remove(element).(*keptContent)
	delete(k.all, entry.uid)
	k.bytes -= entry.bytes
}

// contentSize returns how much JSON a content was made of.
func contentSize(content *workmodel.Content) int {
	bytes := 0
	for _, part := range content.Parts() {
		for _, resource := range part.GetResourceSnapshotSpec().SelectedResources {
			bytes += len(resource.Raw)
		}
	}
	return bytes
}
