#!/usr/bin/env bash
# Makes what Temporal and its clients know each other by, where no cert-manager and no identity provider does: a CA, a certificate for
# the server and one for the hub agents, a key that signs tokens, and the agents' token. Puts them on the hub as Secrets:
#
#   namespace temporal       temporal-tls (ca.crt, tls.crt, tls.key) and temporal-keys (jwks.json, which checks tokens)
#   namespace fleet-system   temporal-client (ca.crt, tls.crt, tls.key, api-key)
#
#   temporal-credentials.sh FOLDER                            makes all, with the current context of kubectl; again before they end
#   temporal-credentials.sh FOLDER token USER PERMISSION…     prints a token, as in: token ada@example.com fleetflow:read
#
# FOLDER keeps the two keys that all others hang on, ca.key and token.key: keep it where you keep the keys of the cluster.
#
# May be set besides:
#   TEMPORAL_NAMESPACE, AGENT_NAMESPACE   the namespaces (temporal, fleet-system); both have to be there
#   TEMPORAL_NAMES                        further names of the server, as in DNS:temporal.example.com,IP:192.0.2.1
#   DAYS                                  how long certificates and tokens hold (365); the CA holds ten times as long
set -euo pipefail
umask 077

folder=${1:?"name a folder for the keys, as in: temporal-credentials.sh ~/fleet-keys"}
temporal=${TEMPORAL_NAMESPACE:-temporal} agents=${AGENT_NAMESPACE:-fleet-system} days=${DAYS:-365}
mkdir -p "$folder"
cd "$folder"

base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

# make_key makes an RSA key unless it is there.
make_key() { [[ -s $1 ]] || openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$1" 2>/dev/null; }

# certify makes a key and a certificate of the CA: its file, its name, its further names.
certify() {
  make_key "$1.key"
  openssl req -new -key "$1.key" -subj "/CN=$2" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days "$days" -out "$1.crt" \
    -extfile <(printf 'keyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=%s\n' "$3") 2>/dev/null
  rm "$1.csr"
}

# token prints a JWT that names a user and the user's permissions.
token() {
  local user=$1 permissions signed
  shift
  permissions=$(printf ',"%s"' "$@")
  signed=$(printf '{"alg":"RS256","typ":"JWT","kid":"fleetflow"}' | base64url).$(printf '{"sub":"%s","permissions":[%s],"exp":%d}' \
    "$user" "${permissions#,}" "$(($(date +%s) + days * 86400))" | base64url)
  printf '%s.%s' "$signed" "$(printf '%s' "$signed" | openssl dgst -sha256 -sign token.key | base64url)"
}

# keep writes files into a Secret: its namespace, its name, its entries.
keep() {
  local namespace=$1 name=$2
  shift 2
  kubectl --namespace "$namespace" create secret generic "$name" "${@/#/--from-file=}" --dry-run=client --output yaml |
    kubectl apply --server-side --force-conflicts --filename -
}

make_key token.key
if [[ ${2:-} == token ]]; then
  token "${3:?"name a user"}" "${@:4}"
  exit
fi
make_key ca.key
[[ -s ca.crt ]] || openssl req -x509 -new -key ca.key -subj "/CN=fleetflow's Temporal" -days "$((10 * days))" -out ca.crt
certify server temporal-frontend "DNS:temporal-frontend.$temporal,DNS:temporal-frontend.$temporal.svc,DNS:temporal-frontend.$temporal.svc.cluster.local${TEMPORAL_NAMES:+,$TEMPORAL_NAMES}"
certify client hub-agent DNS:hub-agent
modulus=$(openssl rsa -in token.key -noout -modulus | cut -d= -f2 | sed 's/../\\x&/g')
printf '{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":"fleetflow","n":"%s","e":"AQAB"}]}\n' "$(printf '%b' "$modulus" | base64url)" >jwks.json
# The agent makes its namespace and its search attributes: that takes an administrator of the server, which is for the fleet alone.
token hub-agent temporal-system:admin >api-key
keep "$temporal" temporal-tls ca.crt tls.crt=server.crt tls.key=server.key
keep "$temporal" temporal-keys jwks.json
keep "$agents" temporal-client ca.crt tls.crt=client.crt tls.key=client.key api-key
rm api-key
