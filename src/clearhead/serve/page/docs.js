// The API reference: each endpoint with its fields, from the server's OpenAPI schema.
const schema = await (await fetch("openapi.json")).json();

function element(name, text, ...children) {
  const made = document.createElement(name);
  made.append(text, ...children);
  return made;
}

function typeOf(field) {
  if (field.anyOf) return field.anyOf.map(typeOf).join(" | ");
  if (field.type === "array") return `list of ${typeOf(field.items)}`;
  return field.$ref?.split("/").pop() ?? field.const ?? field.enum?.join(" | ") ?? field.type;
}

function fieldsOf(operation) {
  const reference = operation.requestBody?.content["application/json"].schema.$ref;
  const body = schema.components.schemas[reference?.split("/").pop()];
  const lines = Object.entries(body?.properties ?? {}).map(([name, field]) => {
    const preset = field.default === undefined ? "" : ` = ${JSON.stringify(field.default)}`;
    return `${name}: ${typeOf(field)}${preset}${field.description ? `   ${field.description}` : ""}`;
  });
  return lines.join("\n");
}

for (const [path, methods] of Object.entries(schema.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const answers = Object.entries(operation.responses).map(([status, each]) => `${status}: ${each.description}`);
    const title = element("summary", `${method.toUpperCase()} ${path}: ${operation.summary}`);
    const fields = element("pre", fieldsOf(operation));
    const statuses = element("pre", answers.join("\n"));
    document.getElementById("operations").append(element("details", title, fields, statuses));
  }
}
