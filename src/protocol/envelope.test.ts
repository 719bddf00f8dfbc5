import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEnvelope, entryTemplate } from "./envelope.ts";

describe("envelopes", () => {
  it("come back as they were put together, whatever the payload", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        fc.option(fc.nat()),
        fc.nat(),
        fc.jsonValue(),
        (id, slotId, ts, value) => {
          const { head, tail } = entryTemplate(id, slotId, JSON.stringify(value));
          const payload = JSON.parse(JSON.stringify(value)) as unknown;
          expect(decodeEnvelope(`${head}${ts}${tail}`)).toEqual({
            ok: true,
            envelope: { id, slotId, ts, payload },
          });
        },
      ),
    );
  });

  it("have exactly the documented fields on the wire, in their order", () => {
    const { head, tail } = entryTemplate("i", null, '{"a":1}');
    expect(`${head}5${tail}`).toBe('{"id":"i","slot_id":null,"ts":5,"payload":{"a":1}}');
  });

  it.each([
    ["", "not JSON"],
    ["{", "not JSON"],
    ["null", "not an envelope"],
    ["[]", "not an envelope"],
    ["5", "not an envelope"],
    ["{}", "`id`"],
    ['{"id":5,"ts":1,"slot_id":0,"payload":1}', "`id`"],
    ['{"id":"x","ts":"1","slot_id":0,"payload":1}', "`ts`"],
    ['{"id":"x","ts":1,"slot_id":"0","payload":1}', "`slot_id`"],
    ['{"id":"x","ts":1,"payload":1}', "`slot_id`"],
    ['{"id":"x","ts":1,"slot_id":0}', "`payload`"],
    ['{"id":"x","ts":1,"slot_id":0,"payload":1,"enc":"zstd"}', 'codec "zstd"'],
  ])("tells what is wrong with %j", (raw, reason) => {
    expect(decodeEnvelope(raw)).toEqual({ ok: false, reason: expect.stringContaining(reason) as string });
  });

  it("never throws, whatever lies in the store", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.json()), (raw) => {
        expect(decodeEnvelope(raw)).toHaveProperty("ok");
      }),
    );
  });
});
